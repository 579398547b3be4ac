"""``isthmus acp --agent``: another author's ACP agent in an ACP client, with its sessions and questions kept by us."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from support.acp_hosting import PROGRAM, prompts, received
from support.acp_wire import AcpProgram, acp_program
from support.isthmus_program import companion_program, isthmus, user
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

COMMAND = shlex.join([sys.executable, str(PROGRAM)])
NOTES = {"name": "notes", "command": "/usr/bin/notes", "args": ["-v"], "env": [{"name": "KEY", "value": "k"}]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def agent(workspace: Path, *arguments: str) -> Any:
    """Return the program, whose first start agrees to run the command."""
    return acp_program(workspace, "--agent", COMMAND, "--trust-agent", *arguments)


async def opened(program: AcpProgram, workspace: Path, *servers: dict[str, Any]) -> str:
    """Initialize, begin a session and return its id."""
    greeting = await program.initialized()
    # Clients would name all folders of a project, and it is not known whether this agent takes more than one.
    assert "additionalDirectories" not in greeting["agentCapabilities"]["sessionCapabilities"]
    response = await program.request("session/new", cwd=str(workspace), mcpServers=list(servers))
    assert "modes" not in response["result"]
    return response["result"]["sessionId"]


async def test_a_session_of_the_agent_is_kept_and_loaded_by_another_process(workspace: Path) -> None:
    async with agent(workspace) as program:
        session_id = await opened(program, workspace)
        prompt = [{"type": "text", "text": "hello"}]
        response = await program.request("session/prompt", sessionId=session_id, prompt=prompt)
        assert response["result"]["stopReason"] == "end_turn"
        assert program.text() == "You said: hello"
        await program.kill()
    async with agent(workspace) as other:
        await other.initialized()
        loaded = await other.request("session/load", sessionId=session_id, cwd=str(workspace), mcpServers=[])
        assert "result" in loaded
        assert (other.text("user_message_chunk"), other.text()) == ("hello", "You said: hello")


async def test_a_question_of_the_agent_is_asked_in_the_client(workspace: Path) -> None:
    async with agent(workspace) as program:
        session_id = await opened(program, workspace)
        prompt = [{"type": "text", "text": "shell"}]
        response = program.begin("session/prompt", sessionId=session_id, prompt=prompt)
        question = await program.question()
        kinds = {option["optionId"]: option["kind"] for option in question["params"]["options"]}
        assert kinds == {"always": "allow_always", "once": "allow_once", "no": "reject_once"}
        program.choose(question, "once")
        await eventually_async(response.done)
        assert response.result()["result"]["stopReason"] == "end_turn"


async def test_the_clients_mcp_servers_are_passed_on_to_the_agent(workspace: Path) -> None:
    async with agent(workspace) as program:
        session_id = await opened(program, workspace, NOTES)
        prompt = [{"type": "text", "text": "hello"}]
        await program.request("session/prompt", sessionId=session_id, prompt=prompt)
    (begun,) = [message for message in received() if message.get("method") == "session/new"]
    assert begun["params"] == {"cwd": str(workspace), "mcpServers": [NOTES]}
    assert list(prompts()) == ["hello"]


def test_a_command_that_was_never_agreed_to_is_not_run(workspace: Path) -> None:
    done = isthmus("acp", "--agent", COMMAND, folder=workspace, text="")
    assert done.returncode == 42
    assert done.stdout == ""
    assert "was never run here, and there is no terminal to ask at" in done.stderr
    assert not (Path(os.environ["HOME"]) / "acp-received.jsonl").exists()


def test_what_an_agent_does_unasked_is_said_before_it_starts(workspace: Path) -> None:
    named = workspace / "qwen"  # by this name more is known of an agent
    named.symlink_to(PROGRAM)
    command = shlex.join([sys.executable, str(named)])
    done = isthmus("acp", "--agent", command, "--trust-agent", folder=workspace, text="")
    assert (done.returncode, done.stdout) == (0, "")
    assert 'write {"tools": {"approvalMode": "default"}} into ~/.qwen/settings.json.' in done.stderr
    assert not (Path(os.environ["HOME"]) / "acp-received.jsonl").exists()


async def test_the_users_editor_shows_the_agents_edit_and_is_seen_by_it(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    with companion_program(workspace, "--open", "a.txt"):
        async with agent(workspace) as program:
            session_id = await opened(program, workspace)
            prompt = [{"type": "text", "text": "edit"}]
            response = program.begin("session/prompt", sessionId=session_id, prompt=prompt)
            question = await program.question()
            await user("accept", "a.txt", "--content", "-", folder=workspace, text="one\nreviewed\n")
            await eventually_async(response.done)
            assert response.result()["result"]["stopReason"] == "end_turn"
            assert program.withdrawn == [question["id"]]
            assert (workspace / "a.txt").read_text() == "one\nreviewed\n"
    (sent,) = prompts()
    assert sent.endswith("edit")
    assert "a.txt" in sent
