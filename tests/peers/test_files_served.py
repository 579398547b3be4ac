"""Files of a session at servers with data folders of their own: what one server has received, the next one has."""

import asyncio
import base64
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import MessagePart, StateChange, TaskState
from isthmus.journal.port.lease_owner import MACHINE
from support.anthropic_wire import AnthropicWire
from support.images import png
from support.isthmus_program import isthmus
from support.loaded_program import LoadedProgram
from support.postgres import Postgres, postgres, run_sql
from support.scripted_wire import Call, Reply, Say
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async
from support.wire_server import WireRequest

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

PNG = png()
IMAGE = MessagePart(raw=base64.b64encode(PNG).decode(), media_type="image/png", filename="dot.png")
KEPT = re.compile(r"all of it is in ([^\]\s]+)\]")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@dataclass(slots=True)
class Machines:
    """Servers with the same database, model and workspace, each with a data folder of its own."""

    folder: Path
    url: str
    wire: AnthropicWire
    loaded: LoadedProgram
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def serve(self, name: str) -> AbstractAsyncContextManager[ServeProgram]:
        """Start the server of a machine."""
        folder, workspace = self.folder / name, self.folder / "work"
        folder.mkdir()
        workspace.mkdir(exist_ok=True)
        self.settings = {"workspace_path": str(workspace)}
        options = ("--journal", self.url, "-m", "anthropic:claude-sonnet-5-5")
        variables = {MACHINE: name, "ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": self.wire.base_url}
        return serve_program(folder, workspace, *options, environment=variables, loaded=self.loaded)

    def lose(self, name: str) -> Path:
        """Remove the only file of tasks of a machine, which others do not reach; return its path."""
        (path,) = self.outputs(name)
        path.unlink()
        return path

    def outputs(self, name: str) -> list[Path]:
        """Return the files of tasks in the data folder of a machine."""
        return [path for path in (self.folder / name / "data" / "outputs").rglob("*") if path.is_file()]


@pytest.fixture
def wire() -> Iterator[AnthropicWire]:
    with AnthropicWire(reply_to) as running:
        yield running


@pytest.fixture
def machines(tmp_path: Path, server: Postgres, wire: AnthropicWire, loaded_isthmus: LoadedProgram) -> Machines:
    return Machines(tmp_path, server.database(), wire, loaded_isthmus)


def reply_to(request: WireRequest) -> Reply:
    """Run a long command, then one that needs an answer, then read the whole output of the first; or just answer."""
    messages = request.json["messages"]
    if "wait" in str(messages[0]) and len(messages) == 1:
        return Reply.of(Call("run_shell_command", {"command": "touch begun; until test -e go; do sleep 0.1; done"}))
    if "count" not in str(messages[0]):
        return Reply.of(Say("I see."))
    steps = (
        lambda: Call("run_shell_command", {"command": "seq 1 20000"}),
        lambda: Call("run_shell_command", {"command": "true"}),
        lambda: Call("read_file", {"file_path": path_in(request), "start_line": 12_345, "end_line": 12_346}),
        lambda: Say("Done."),
    )
    return Reply.of(steps[sum(message["role"] == "assistant" for message in messages)]())


def path_in(request: WireRequest) -> str:
    """Return the path that a request names for the whole output of a command."""
    (found,) = KEPT.findall(request.body.decode())
    return found


async def until_state(agent: RemoteAgent, task: str, state: TaskState, after: int = 0) -> None:
    async with asyncio.timeout(60):
        async for item in (await agent.follow(task, after)).deliveries:
            if isinstance(item.event, StateChange) and item.event.state is state:
                return
    raise AssertionError("the stream ended")


async def allow(agent: RemoteAgent, task: str) -> int:
    """Allow the call that a task asks for; return the number of its last event before."""
    snapshot = await agent.get(task)
    await agent.answer(
        task, [ToolCallConfirmation(call.tool_call_id, "proceed_once") for call in snapshot.pending], answered_by="test"
    )
    return snapshot.seq


async def test_the_next_server_sends_an_image_that_was_attached_at_a_killed_one(machines: Machines) -> None:
    async with machines.serve("a") as first, machines.serve("b") as second:
        async with first.client() as agent:
            message = PromptMessage(
                "What is it?", settings=machines.settings, parts=(MessagePart(text="What is it?"), IMAGE)
            )
            turn = await agent.prompt(message)
            task = turn.task_id
            await until_state(agent, task, TaskState.COMPLETED)
            context = (await agent.get(task)).context_id
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        there = machines.lose("a")
        async with second.client() as agent:
            turn = await agent.prompt(PromptMessage("Sure?", context_id=context, settings=machines.settings))
            await until_state(agent, turn.task_id, TaskState.COMPLETED)
    sent = machines.wire.model_requests[-1].body.decode()
    assert sent.count(base64.b64encode(PNG).decode()) == 1
    assert "not shown" not in sent
    (here,) = machines.outputs("b")
    assert (here.name, here.parent.name, here.read_bytes()) == (there.name, task, PNG)

    assert await run_sql(machines.url, "SELECT count(*) FROM files WHERE task = $1", task) == 1
    done = isthmus("tasks", "delete", task, "--journal", machines.url, folder=machines.folder)
    assert done.returncode == 0, done.stderr
    assert await run_sql(machines.url, "SELECT count(*) FROM files") == 0


@pytest.mark.extended
async def test_the_whole_output_of_a_command_can_be_read_at_the_next_server(machines: Machines) -> None:
    async with machines.serve("a") as first, machines.serve("b") as second:
        async with first.client() as agent:
            turn = await agent.prompt(PromptMessage("count", settings=machines.settings))
            task = turn.task_id
            await until_state(agent, task, TaskState.INPUT_REQUIRED)
            seq = await allow(agent, task)
            await until_state(agent, task, TaskState.INPUT_REQUIRED, seq)
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        there = machines.lose("a")
        async with second.client() as agent:
            seq = await allow(agent, task)
            await until_state(agent, task, TaskState.COMPLETED, seq)
    (here,) = machines.outputs("b")
    requests = machines.wire.model_requests
    assert [path_in(request) for request in requests[1:]] == [str(there), str(here), str(here)]
    read = str(requests[-1].json["messages"][-1])
    assert "12345\\n12346" in read.replace("\\\\n", "\\n")


@pytest.mark.extended
async def test_a_task_at_work_gets_an_image_that_another_server_has_received(machines: Machines) -> None:
    async with (
        machines.serve("a") as first, machines.serve("b") as second,
        first.client() as agent, second.client() as other,
    ):  # fmt: skip
        turn = await agent.prompt(PromptMessage("wait", settings=machines.settings))
        task = turn.task_id
        await until_state(agent, task, TaskState.INPUT_REQUIRED)
        seq = await allow(agent, task)
        await eventually_async((machines.folder / "work" / "begun").exists)
        parts = (MessagePart(text="And this?"), IMAGE)
        await other.prompt(PromptMessage("And this?", task_id=task, settings=machines.settings, parts=parts))
        machines.lose("b")
        (machines.folder / "work" / "go").touch()
        await until_state(agent, task, TaskState.COMPLETED, seq)
        assert [path.read_bytes() for path in machines.outputs("a")] == [PNG]
        assert machines.outputs("b") == []
    sent = machines.wire.model_requests[-1].body.decode()
    assert sent.count(base64.b64encode(PNG).decode()) == 1
