"""``isthmus serve --agent``: another agent as a program, through crashes of the server, and the consent to run it."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.events import TaskState
from support.acp_hosting import PROGRAM, prompts, received, running_agents, seen_of
from support.acp_wire import acp_program
from support.isthmus_program import ISTHMUS, isthmus
from support.pty_program import pty_program
from support.serve_program import ServeProgram, serve_program
from support.turns import view_of
from support.waiting import eventually, eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

UNASKED = 'write {"tools": {"approvalMode": "default"}} into ~/.qwen/settings.json.'
COMMAND = shlex.join([sys.executable, str(PROGRAM)])


@asynccontextmanager
async def served(folder: Path, *arguments: str) -> AsyncGenerator[ServeProgram]:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    async with serve_program(folder, workspace, "--agent", COMMAND, *arguments) as program:
        yield program


@pytest.mark.slow
async def test_after_kill_9_a_question_and_work_are_lost_and_the_session_loaded(tmp_path: Path) -> None:
    async with served(tmp_path, "--trust-agent") as program, program.client() as client:
        turn = await client.prompt(PromptMessage("shell", settings={"workspace_path": str(tmp_path / "workspace")}))
        asked = await seen_of(client, turn)
        assert asked.state is TaskState.INPUT_REQUIRED
        assert len(running_agents()) == 1
        await program.end(signal.SIGKILL)
        await eventually_async(lambda: not running_agents(), what="the end of the agent")
    async with served(tmp_path) as program, program.client() as client:

        async def has_failed() -> bool:
            return (await client.get(asked.task_id)).state is TaskState.FAILED

        await eventually_async(has_failed, what="the end of the task whose question was lost")
        assert "process ended in the middle of the agent's work" in ((await client.get(asked.task_id)).error or "")
        message = PromptMessage("hello", context_id=asked.context_id)
        again = await seen_of(client, await client.prompt(message))
        assert again.text == "You said: hello"
        message = PromptMessage("wait", context_id=asked.context_id)
        working = await client.prompt(message)
        await eventually_async(lambda: prompts()[-1] == "wait", what="the prompt")
        await program.end(signal.SIGKILL)
    async with served(tmp_path) as program, program.client() as client:
        cut = await seen_of(client, await client.follow(working.snapshot.task_id, 0))
        assert (cut.state, cut.view.reason) == (TaskState.FAILED, "agent_lost")
    methods = [item.get("method") for item in received()]
    assert (methods.count("session/new"), methods.count("session/load")) == (1, 1)
    assert list(prompts()) == ["shell", "hello", "wait"]
    listed = isthmus("tasks", "list", "--data-dir", str(tmp_path / "data"), folder=tmp_path)
    assert "Hosted agent " in listed.stdout
    assert len([line for line in listed.stdout.splitlines() if line.split()[1] in ("failed", "completed")]) == 3


@pytest.mark.slow
async def test_a_client_of_acp_reaches_it_through_the_server_and_sees_no_modes_of_ours(tmp_path: Path) -> None:
    workspace = str(tmp_path / "workspace")
    async with served(tmp_path, "--trust-agent") as program:
        connecting = ("--connect", program.url, "--token-file", str(tmp_path / "token"))
        async with acp_program(tmp_path / "workspace", *connecting) as client:
            await client.initialized()
            opened = await client.request("session/new", cwd=workspace, mcpServers=[])
            prompt = [{"type": "text", "text": "hello"}]
            session = opened["result"]["sessionId"]
            response = await client.request("session/prompt", sessionId=session, prompt=prompt)
            assert response["result"]["stopReason"] == "end_turn"
            assert client.text() == "You said: hello"
    assert "modes" not in opened["result"]


@pytest.mark.slow
async def test_a_server_that_stops_ends_the_agent(tmp_path: Path) -> None:
    async with served(tmp_path, "--trust-agent") as program, program.client() as client:
        await view_of(await client.prompt(PromptMessage("hello")))
        assert len(running_agents()) == 1
        assert await program.end(signal.SIGTERM) == 0
        assert not running_agents()


@pytest.mark.slow
def test_the_command_is_not_run_without_consent(tmp_path: Path) -> None:
    command = [*ISTHMUS, "serve", "--data-dir", str(tmp_path), "--agent", COMMAND]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 42
    assert "was never run here, and there is no terminal to ask at" in ended.stderr
    assert "runs with your rights, outside of any sandbox" in ended.stderr
    assert "start once with --trust-agent" in ended.stderr
    assert not (tmp_path / "acp-agents.json").exists()


@pytest.mark.slow
def test_the_user_at_a_terminal_is_shown_the_command_and_asked_once(tmp_path: Path) -> None:
    named = tmp_path / "qwen"  # by this name more is known of an agent
    named.symlink_to(PROGRAM)
    agent = shlex.join([sys.executable, str(named)])
    command = [*ISTHMUS, "serve", "--port", "0", "--data-dir", str(tmp_path / "data"), "--agent", agent]
    asked = [*command, "--agent-env", "MY_KEY"]
    with pty_program(asked, folder=tmp_path, environment={**os.environ, "MY_KEY": "hidden"}) as terminal:
        eventually(lambda: "Run it, now and at later starts?" in terminal.screen, what="the question")
        shown = terminal.screen.replace("\n", "")
        assert UNASKED in shown
        for part in (str(named), "outside of any sandbox", "HOME", "MY_KEY", str(tmp_path / "data/acp-agents.json")):
            assert part in shown
        assert "hidden" not in shown
        terminal.press("y\r")
        eventually(lambda: "A2A server ready at" in terminal.screen, what="the server")
    with pty_program(command, folder=tmp_path, environment=os.environ) as terminal:
        eventually(lambda: "Agent: " in terminal.screen, what="the server, without a question")
        eventually(lambda: UNASKED in terminal.screen.replace("\n", ""), what="what the agent does unasked")
