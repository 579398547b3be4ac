"""Files with changes that are not saved: the agent reads what the editor has, and does not write over it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.acp_wire import AcpProgram, acp_program
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SCRIPT = """
name: practice
scenarios:
  - prompt: 'read'
    replies:
      - call: {name: read_file, arguments: {file_path: notes.txt}}
      - text: I have read it.
  - prompt: 'edit'
    replies:
      - call: {name: write_file, arguments: {file_path: notes.txt, content: "new\\n"}}
      - alternatives:
          - when: result failed
            text: It was refused.
          - text: It is written.
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("saved\n")
    return folder


async def answered(program: AcpProgram, workspace: Path, text: str, editor: dict[str, Any]) -> list[dict[str, Any]]:
    """Send a prompt, answer the agent's request for a file by ``editor``, and return all updates of tool calls."""
    opened = await program.request("session/new", cwd=str(workspace), mcpServers=[])
    session_id = opened["result"]["sessionId"]
    prompt = [{"type": "text", "text": text}]
    response = program.begin("session/prompt", sessionId=session_id, prompt=prompt)
    question = await program.question()
    assert question["method"] == "fs/read_text_file"
    assert question["params"] == {"sessionId": session_id, "path": str(workspace / "notes.txt")}
    program.send({"jsonrpc": "2.0", "id": question["id"], **editor})
    if text == "edit" and "It was refused." not in program.text():
        await eventually_async(lambda: response.done() or len(program.questions) > 1)
        if len(program.questions) > 1:
            program.choose(program.questions[1], "proceed_once")
    assert (await asyncio.wait_for(response, 60))["result"]["stopReason"] == "end_turn"
    updates = [message["params"]["update"] for message in program.updates]
    return [update for update in updates if update["sessionUpdate"] == "tool_call_update"]


def acp(workspace: Path) -> Any:
    script = workspace.parent / "script.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    return acp_program(workspace, "--model", f"scripted:{script}")


async def test_the_agent_reads_what_the_editor_has(workspace: Path) -> None:
    async with acp(workspace) as program:
        await program.initialized(fs={"readTextFile": True})
        *_, last = await answered(program, workspace, "read", {"result": {"content": "typed\n"}})
        assert last["content"][0]["content"]["text"] == (
            "notes.txt has changes in the user's editor that are not saved; this is the editor's text.\ntyped\n"
        )


@pytest.mark.parametrize(
    "editor", [{"result": {"content": "saved\r\n"}}, {"error": {"code": -32603, "message": "no buffer"}}, {"result": 1}]
)
async def test_the_file_on_the_disk_is_read_where_the_editor_has_no_other_text(
    workspace: Path, editor: dict[str, Any]
) -> None:
    async with acp(workspace) as program:
        await program.initialized(fs={"readTextFile": True})
        *_, last = await answered(program, workspace, "read", editor)
        assert last["content"][0]["content"]["text"] == "saved\n"


async def test_an_edit_of_a_file_with_unsaved_changes_is_refused(workspace: Path) -> None:
    async with acp(workspace) as program:
        await program.initialized(fs={"readTextFile": True})
        *_, last = await answered(program, workspace, "edit", {"result": {"content": "typed\n"}})
        assert last["status"] == "failed"
        assert last["content"][0]["content"]["text"].startswith("notes.txt has changes in the user's editor that are")
        assert program.text() == "It was refused."
        assert (workspace / "notes.txt").read_text() == "saved\n"


async def test_an_edit_of_a_saved_file_is_asked_and_made(workspace: Path) -> None:
    async with acp(workspace) as program:
        await program.initialized(fs={"readTextFile": True})
        await answered(program, workspace, "edit", {"result": {"content": "saved\n"}})
        assert (workspace / "notes.txt").read_text() == "new\n"


async def test_a_client_without_files_is_not_asked(workspace: Path) -> None:
    async with acp(workspace) as program:
        await program.initialized()
        opened = await program.request("session/new", cwd=str(workspace), mcpServers=[])
        prompt = [{"type": "text", "text": "read"}]
        await program.request("session/prompt", sessionId=opened["result"]["sessionId"], prompt=prompt)
        assert program.questions == []
