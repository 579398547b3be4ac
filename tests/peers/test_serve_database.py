"""Servers that keep their tasks in one PostgreSQL: any of them answers, follows and goes on with what another began."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import Delivery, PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, TaskState, TextContent
from support.isthmus_program import isthmus
from support.postgres import Postgres, postgres
from support.rfc_client import rfc_client_of
from support.rfc_scenario import Script, continue_completed, first_half, second_half
from support.serve_program import SILENT_EDIT_SCRIPT, ServeProgram, serve_program

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

WORDS = "".join(f"      - text: 'word{number} '\n      - delay: 0.05\n" for number in range(40))
SCRIPT = f"""
name: practice
scenarios:
  - prompt: (?i)greet
    replies:
      - call: {{name: write_file, arguments: {{file_path: greeting.txt, instruction: x, content: "hello\\n"}}}}
      - text: I wrote the greeting.
  - prompt: long
    replies:
      - steps:
{WORDS.replace("      -", "          -")}
  - prompt: '.'
    replies:
      - text: 'You said: {{{{prompt}}}}'
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres(is_durable=True) as found:
        yield found


@asynccontextmanager
async def replica(folder: Path, workspace: Path, url: str) -> AsyncGenerator[tuple[ServeProgram, RemoteAgent]]:
    """Start a server with a data folder of its own, and connect to it."""
    folder.mkdir(exist_ok=True)
    async with serve_program(folder, workspace, "--journal", url, script=SCRIPT) as program:
        agent = await RemoteAgent.connect(program.url, program.token)
        try:
            yield program, agent
        finally:
            await agent.aclose()


async def until_state(agent: RemoteAgent, task: str, *states: TaskState, after: int = 0) -> list[Delivery]:
    """Follow a task until it is in one of these states; return its events."""
    seen: list[Delivery] = []
    async with asyncio.timeout(60):
        async for item in (await agent.follow(task, after)).deliveries:
            if item.seq is not None:
                seen.append(item)
            if isinstance(item.event, StateChange) and item.event.state in states:
                return seen
    raise AssertionError(f"the stream ended: {[item.event for item in seen if isinstance(item.event, StateChange)]}")


async def test_a_question_is_answered_at_another_server_which_does_the_work(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    url = server.database()
    async with (
        replica(tmp_path / "a", workspace, url) as (_, first),
        replica(tmp_path / "b", workspace, url) as (_, second),
    ):
        turn = await first.prompt(PromptMessage("greet", settings={"workspace_path": str(workspace)}))
        await until_state(first, turn.task_id, TaskState.INPUT_REQUIRED)
        asked = await second.get(turn.task_id)
        [call] = asked.pending
        await second.answer(turn.task_id, [ToolCallConfirmation(call.tool_call_id, "proceed_once")], answered_by="b")
        seen = await until_state(first, turn.task_id, TaskState.COMPLETED)
        assert len({item.seq for item in seen}) == len(seen)
        assert any(isinstance(item.event, TextContent) and "greeting" in item.event.text for item in seen)
    assert (workspace / "greeting.txt").read_text("utf-8") == "hello\n"
    listed = await asyncio.to_thread(isthmus, "tasks", "list", "--journal", url, folder=workspace)
    assert turn.task_id[:8] in listed.stdout
    assert "completed" in listed.stdout


async def test_a_client_that_has_the_rfc_alone_plays_each_step_at_another_server(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    arguments = ("--strict-extension", "--journal", server.database())
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with (
        serve_program(tmp_path / "a", workspace, *arguments, script=SILENT_EDIT_SCRIPT) as first,
        serve_program(tmp_path / "b", workspace, *arguments, script=SILENT_EDIT_SCRIPT) as second,
    ):
        one, other = (rfc_client_of(program.url, program.token) for program in (first, second))
        script = Script("Greet the world", "greeting.txt", "hello\n", "I wrote the greeting.")
        waiting = await asyncio.to_thread(first_half, one, workspace, script)
        await asyncio.to_thread(second_half, other, waiting, workspace, script)
        await asyncio.to_thread(continue_completed, one, waiting, "and again", "You said: and again")


async def test_the_task_of_a_killed_server_goes_on_at_another(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    url = server.database()
    async with replica(tmp_path / "b", workspace, url) as (_, second):
        async with replica(tmp_path / "a", workspace, url) as (program, first):
            turn = await first.prompt(PromptMessage("long", settings={"workspace_path": str(workspace)}))
            async for item in turn.deliveries:
                if isinstance(item.event, TextContent) and "word3" in item.event.text:
                    break
            assert await program.end(signal.SIGKILL) == -signal.SIGKILL
        seen = await until_state(second, turn.task_id, TaskState.COMPLETED)
        assert len({item.seq for item in seen}) == len(seen)
        snapshot = await second.get(turn.task_id)
        assert snapshot.state is TaskState.COMPLETED


async def test_without_the_database_requests_are_refused_and_what_runs_waits(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    url = server.database()
    async with replica(tmp_path / "a", workspace, url) as (program, agent):
        turn = await agent.prompt(PromptMessage("long", settings={"workspace_path": str(workspace)}))
        async for item in turn.deliveries:
            if isinstance(item.event, TextContent) and "word3" in item.event.text:
                break
        await asyncio.to_thread(server.stop, "immediate")
        with pytest.raises(Exception, match="cannot be reached at the moment"):
            async with asyncio.timeout(30):
                await agent.prompt(PromptMessage("hi", settings={"workspace_path": str(workspace)}))
        headers = {"Authorization": f"Bearer {program.token}", "A2A-Version": "1.0"}
        async with httpx.AsyncClient(base_url=program.url, headers=headers, timeout=30) as client:
            refused = await client.get("tasks")
        assert refused.status_code == 503
        assert refused.json()["error"]["status"] == "UNAVAILABLE"
        await asyncio.to_thread(server.start)
        seen = await until_state(agent, turn.task_id, TaskState.COMPLETED)
        said = "".join(item.event.text for item in seen if isinstance(item.event, TextContent))
        assert said.split() == [f"word{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("postgresql://postgres@127.0.0.1:1/nothing", "cannot be opened"),
        ("mysql://x@127.0.0.1/y", "is not the scheme of a database"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_at_the_start(workspace: Path, given: str, said: str) -> None:
    script = workspace / "script.yaml"
    script.write_text(SCRIPT, "utf-8")
    done = isthmus("serve", "--journal", given, "--port", "0", "-m", f"scripted:{script}", folder=workspace)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
