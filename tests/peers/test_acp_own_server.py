"""``isthmus acp`` beside a running ``isthmus serve`` of the same user."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.files.locations import runtime_directory
from isthmus.programs.serve.running_servers import FOLDER, running_servers
from support.acp_wire import acp_program
from support.isthmus_program import ISTHMUS
from support.loaded_program import LoadedProgram
from support.mcp_hosting import SUPPORT
from support.serve_program import serve_program
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def answer_of(workspace: Path, *arguments: str) -> str:
    """Send a prompt by ``isthmus acp`` and return what the agent said."""
    async with acp_program(workspace, *arguments) as program:
        await program.initialized()
        opened = await program.request("session/new", cwd=str(workspace), mcpServers=[])
        prompt = [{"type": "text", "text": "hi"}]
        response = await program.request("session/prompt", sessionId=opened["result"]["sessionId"], prompt=prompt)
        assert response["result"]["stopReason"] == "end_turn"
        return program.text()


async def test_the_users_own_server_is_announced_and_used(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    data = str(tmp_path / "data")
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server:
        (announced,) = await asyncio.to_thread(running_servers)
        assert (announced.pid, announced.url) == (server.process.pid, server.url)
        assert announced.folders == (str(workspace),)
        assert announced.may_work_in(workspace / "below")
        assert not announced.may_work_in(tmp_path)
        assert announced.token_file.read_text().strip() == server.token
        assert await answer_of(workspace, "--data-dir", data) == "You said: hi"
        async with server.client() as client:
            assert [task.title for task in await client.tasks()] == ["hi"]
    assert await asyncio.to_thread(running_servers) == []


async def test_another_agent_is_asked_for_and_runs_in_the_process(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    data = str(tmp_path / "data")
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus):
        answers = {
            "other option": await answer_of(workspace, "--data-dir", data, "--model", "demo"),
            "in process": await answer_of(workspace, "--data-dir", data, "--in-process"),
            "other tasks": await answer_of(workspace, "--data-dir", str(tmp_path / "others")),
            "other folder": await answer_of(tmp_path, "--data-dir", data),
        }
    others = {name: said for name, said in answers.items() if not said.startswith("I am the demonstration model")}
    assert others == {}


@pytest.mark.parametrize("mode", ["plan", "yolo"])
async def test_a_client_shows_the_mode_that_is_in_force_on_the_server(
    tmp_path: Path, workspace: Path, mode: str, loaded_isthmus: LoadedProgram
) -> None:
    arguments = ("--token-file", str(tmp_path / "token"))
    async with serve_program(tmp_path, workspace, "--approval-mode", mode, loaded=loaded_isthmus) as server:
        async with acp_program(workspace, "--connect", server.url, *arguments) as program:
            await program.initialized()
            opened = await program.request("session/new", cwd=str(workspace), mcpServers=[])
            assert opened["result"]["modes"]["currentModeId"] == mode
            session, prompt = opened["result"]["sessionId"], [{"type": "text", "text": "greet"}]
            response = await program.request("session/prompt", sessionId=session, prompt=prompt)
            assert response["result"]["stopReason"] == "end_turn"
            assert (workspace / "greeting.txt").exists() == (mode != "plan")
            usage = program.of_kind("usage_update")[-1]
            free = {"amount": 0.0, "currency": "USD"}
            assert usage == {"sessionUpdate": "usage_update", "used": usage["used"], "size": 128_000, "cost": free}
            assert usage["used"] > 100
        async with acp_program(workspace, "--connect", server.url, *arguments) as program:
            await program.initialized()
            resumed = await program.request("session/resume", sessionId=session, cwd=str(workspace))
            assert resumed["result"]["modes"]["currentModeId"] == mode
            await eventually_async(lambda: program.of_kind("usage_update") == [usage])


async def test_the_mode_that_a_client_chose_holds_on_a_server_that_asks_nothing(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with (
        serve_program(tmp_path, workspace, "--approval-mode", "yolo", loaded=loaded_isthmus) as server,
        acp_program(workspace, "--connect", server.url, "--token-file", str(tmp_path / "token")) as program,
    ):
        await program.initialized()
        opened = await program.request("session/new", cwd=str(workspace), mcpServers=[])
        session, prompt = opened["result"]["sessionId"], [{"type": "text", "text": "greet"}]
        assert (await program.request("session/set_mode", sessionId=session, modeId="default"))["result"] == {}
        response = program.begin("session/prompt", sessionId=session, prompt=prompt)
        question = await program.question()
        assert not (workspace / "greeting.txt").exists()
        program.choose(question, "cancel")
        assert (await response)["result"]["stopReason"] == "end_turn"


async def test_sessions_are_deleted_in_the_process_and_not_through_a_server(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    data = ("--data-dir", str(tmp_path / "data"))
    async with acp_program(workspace, *data, "-m", "demo") as program:
        capabilities = (await program.initialized())["agentCapabilities"]["sessionCapabilities"]
        assert capabilities["delete"] == {}
        session = (await program.request("session/new", cwd=str(workspace), mcpServers=[]))["result"]["sessionId"]
        prompt = [{"type": "text", "text": "hi"}]
        assert "result" in await program.request("session/prompt", sessionId=session, prompt=prompt)
        listed = (await program.request("session/list"))["result"]["sessions"]
        assert [item["sessionId"] for item in listed] == [session]
        assert (await program.request("session/delete", sessionId=session))["result"] == {}
        assert (await program.request("session/list"))["result"]["sessions"] == []
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus), acp_program(workspace, *data) as program:
        assert "delete" not in (await program.initialized())["agentCapabilities"]["sessionCapabilities"]
        refused = await program.request("session/delete", sessionId=session)
        assert refused["error"]["code"] == -32601


async def test_the_file_of_a_killed_server_leads_nowhere(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server:
        server.process.kill()
        await server.process.wait()
        assert await asyncio.to_thread(running_servers) == []
        assert (await answer_of(workspace, "--data-dir", str(tmp_path / "data"))).startswith("I am the demo")
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus):
        assert len(list((runtime_directory() / FOLDER).iterdir())) == 1


KEEPING = """
name: practice
scenarios:
  - prompt: '.'
    replies:
      - call: {name: keep, arguments: {note: hello}}
      - text: Done.
"""


def notes() -> dict[str, Any]:
    """Return an MCP server as editors pass it: a command."""
    return {"name": "notes", "command": sys.executable, "args": [str(SUPPORT / "notes_mcp_server.py")], "env": []}


async def test_the_users_own_server_runs_the_commands_that_the_editor_passes(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    data = str(tmp_path / "data")
    async with (
        serve_program(tmp_path, workspace, script=KEEPING, loaded=loaded_isthmus) as server,
        acp_program(workspace, "--data-dir", data) as program,
    ):
        await program.initialized()
        opened = await program.request("session/new", cwd=str(workspace), mcpServers=[notes()])
        session, prompt = opened["result"]["sessionId"], [{"type": "text", "text": "keep it"}]
        response = program.begin("session/prompt", sessionId=session, prompt=prompt)
        question = await program.question()
        program.choose(question, "proceed_once")
        assert (await response)["result"]["stopReason"] == "end_turn"
        assert "kept hello" in str(program.of_kind("tool_call_update"))
        async with server.client() as client:
            assert [task.title for task in await client.tasks()] == ["keep it"]


@pytest.mark.parametrize(
    ("arguments", "who"),
    [
        (("--max-approval-mode", "auto_edit"), "owner"),
        ((), "user"),
    ],
)
async def test_a_server_refuses_commands_with_the_reason_to_anybody_else(
    tmp_path: Path, workspace: Path, arguments: tuple[str, ...], who: str, loaded_isthmus: LoadedProgram
) -> None:
    token = tmp_path / "token"
    async with serve_program(tmp_path, workspace, *arguments, loaded=loaded_isthmus) as server:
        if who == "user":
            token = tmp_path / "of-alice"
            adding = await asyncio.create_subprocess_exec(
                *ISTHMUS, "serve", "token", "add", "alice", "--data-dir", str(tmp_path / "data"), stdout=-1
            )
            said, _ = await adding.communicate()
            token.write_bytes(said.split()[-1])
        async with acp_program(workspace, "--connect", server.url, "--token-file", str(token)) as program:
            await program.initialized()
            opened = await program.request("session/new", cwd=str(workspace), mcpServers=[notes()])
            assert opened["error"]["code"] == -32602
            assert "'notes' is a command, and commands of clients are not run here" in opened["error"]["message"]
            assert "isthmus acp --in-process" in opened["error"]["message"]
            assert "result" in await program.request("session/new", cwd=str(workspace), mcpServers=[])
