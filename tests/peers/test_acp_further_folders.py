"""A session with further folders in the real program: its agent reads and writes there, once the user has agreed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.acp_wire import AcpProgram, acp_program

pytestmark = pytest.mark.anyio

SCRIPT = """
name: practice
scenarios:
  - prompt: 'note'
    replies:
      - call: {name: read_file, arguments: {file_path: BESIDE/there.txt}}
      - call: {name: write_file, arguments: {file_path: BESIDE/new.txt, content: "new\\n"}}
      - alternatives:
          - when: result failed
            text: It was refused.
          - text: It is written.
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "there.txt").write_text("there\n")
    return folder


async def prompted(program: AcpProgram, session: str, *choices: str) -> dict[str, Any]:
    """Send the prompt, answer the questions in order, and return the response."""
    asked = len(program.questions)
    response = program.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "note"}])
    for number, choice in enumerate(choices, asked + 1):
        program.choose(await program.question(number), choice)
    return await asyncio.wait_for(response, 60)


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_the_agent_works_in_a_further_folder_if_the_user_agrees(
    tmp_path: Path, beside: Path, is_allowed: bool
) -> None:
    work, script = tmp_path / "work", tmp_path / "script.yaml"
    work.mkdir()
    script.write_text(SCRIPT.replace("BESIDE", str(beside)), encoding="utf-8")
    async with acp_program(work, "--model", f"scripted:{script}") as program:
        greeting = await program.initialized()
        assert greeting["agentCapabilities"]["sessionCapabilities"]["additionalDirectories"] == {}
        more = {"additionalDirectories": [str(beside)]}
        opened = await program.request("session/new", cwd=str(work), mcpServers=[], **more)
        session = opened["result"]["sessionId"]
        choices = ("allow", "proceed_once") if is_allowed else ("refuse", "cancel")
        await prompted(program, session, *choices)
        assert program.questions[0]["params"]["toolCall"]["title"].startswith("Let the agent work in further folders")
    assert (beside / "new.txt").exists() is is_allowed
