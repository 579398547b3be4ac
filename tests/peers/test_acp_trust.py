"""The question whether a folder is trusted, put to the user of an ACP client before the first prompt."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.acp_wire import AcpProgram, acp_program

pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".gemini").mkdir(parents=True)
    servers = {"mcpServers": {"spy": {"command": "touch", "args": [str(tmp_path / "started")]}}}
    (folder / ".gemini" / "settings.json").write_text(json.dumps(servers))
    return folder


def trusted_folders() -> dict[str, str]:
    """Return what the user has decided so far."""
    path = Path(os.environ["HOME"]) / ".gemini" / "trustedFolders.json"
    return json.loads(path.read_text()) if path.exists() else {}


async def prompted(program: AcpProgram, workspace: Path, choice: str | None) -> list[dict[str, Any]]:
    """Send a prompt, answer the question of trust if one is expected, and return the questions."""
    await program.initialized()
    opened = await program.request("session/new", cwd=str(workspace), mcpServers=[])
    prompt = [{"type": "text", "text": "hi"}]
    response = program.begin("session/prompt", sessionId=opened["result"]["sessionId"], prompt=prompt)
    if choice is not None:
        program.choose(await program.question(), choice)
    assert (await response)["result"]["stopReason"] == "end_turn"
    return program.questions


@pytest.mark.parametrize(
    ("choice", "decided"),
    [("trust-parent", "TRUST_PARENT"), ("later", None)],
)
async def test_the_user_decides_once_what_the_folder_may_start(
    tmp_path: Path, workspace: Path, choice: str, decided: str | None
) -> None:
    async with acp_program(workspace, "--model", "demo") as program:
        (asked,) = await prompted(program, workspace, choice)
    call = asked["params"]["toolCall"]
    assert call["title"] == f"Do you trust {workspace}?"
    assert "touch" in call["content"][0]["content"]["text"]
    kinds = [option["kind"] for option in asked["params"]["options"]]
    assert kinds == ["allow_always", "allow_always", "reject_always", "reject_once"]
    assert list(trusted_folders().values()) == ([] if decided is None else [decided])
    async with acp_program(workspace, "--model", "demo") as again:
        questions = await prompted(again, workspace, "later" if decided is None else None)
    assert len(questions) == (1 if decided is None else 0)
    assert (tmp_path / "started").exists() is choice.startswith("trust")
