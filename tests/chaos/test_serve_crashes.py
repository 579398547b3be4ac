"""Kills ``isthmus serve`` while clients watch it over the wire; they continue after their last event."""

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chaos.crash_run import SCRIPT
from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import CommandMessage, CommandScope, Delivery, PromptMessage, PushTarget, Turn
from isthmus.development_tool import ToolCallConfirmation
from isthmus.events import StateChange, ToolCallUpdate
from support.extended import first_of
from support.journals import KINDS
from support.postgres import Postgres, postgres
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async
from support.wire_server import Answer, WireServer

pytestmark = pytest.mark.anyio

SEED = int(os.environ.get("CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
KILLS = 6 if "CHAOS_KILLS" in os.environ else 1


class Client:
    """A client that watches one task over several servers, and records the events."""

    def __init__(self, workspace: Path, push: PushTarget, command: tuple[str, ...]) -> None:
        self._settings = {"workspace_path": str(workspace)}
        self._push = push
        self._command = command
        self.task_id = ""
        self.seen: list[Delivery] = []

    @property
    def last_state(self) -> str:
        """The last task state that it saw."""
        return [str(item.event.state) for item in self.seen if isinstance(item.event, StateChange)][-1]

    @property
    def at(self) -> int:
        return self.seen[-1].seq or 0 if self.seen else 0

    async def watch(self, server: ServeProgram, kill_after: int | None) -> bool:
        """Watch and answer until the task ends (True), or until the server is killed after this many events."""
        agent = await RemoteAgent.connect(server.url, server.token)
        left = kill_after
        try:
            turn = await self._turn(agent)
            while True:
                async for delivery in turn.deliveries:
                    if delivery.seq is None:
                        continue
                    self.seen.append(delivery)
                    if left is not None and (left := left - 1) == 0:
                        server.process.kill()
                        await server.process.wait()
                        return False
                snapshot = await agent.get(self.task_id)
                if snapshot.state.is_terminal:
                    return True
                for call in snapshot.pending:
                    answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
                    await agent.answer(self.task_id, answer, answered_by="test")
                turn = await agent.follow(self.task_id, self.at)
        finally:
            await agent.aclose()

    async def _turn(self, agent: RemoteAgent) -> Turn:
        if self.task_id:
            return await agent.follow(self.task_id, self.at)
        if self._command:
            execution = await agent.execute(CommandMessage(self._command, scope=CommandScope(settings=self._settings)))
            assert execution.turn is not None, execution.message
            self.task_id = execution.turn.task_id
            await agent.set_push(self.task_id, self._push)
            return execution.turn
        turn = await agent.prompt(PromptMessage("work 1", settings=self._settings), push=self._push)
        self.task_id = turn.task_id
        return turn


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres(is_durable=True) as found:
        yield found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", first_of(KINDS))
@pytest.mark.parametrize("command", [(), ("trace",)], ids=["prompt", "command"])
async def test_clients_that_resume_miss_nothing_of_a_server_that_is_killed(
    tmp_path: Path, command: tuple[str, ...], kind: str, database: Postgres
) -> None:
    journal = ("--journal", database.database()) if kind == "postgres" else ()
    with WireServer(lambda _: Answer(204, {"content-length": "0"})) as receiver:
        await watch_over_kills(tmp_path, command, receiver, journal)


async def watch_over_kills(
    tmp_path: Path, command: tuple[str, ...], receiver: WireServer, journal: tuple[str, ...]
) -> None:
    print(f"CHAOS_SEED={SEED}")
    chance = random.Random(SEED)  # noqa: S311 - to be repeated
    workspace, traces = tmp_path / "work", tmp_path / "traces"
    workspace.mkdir()
    script = SCRIPT.replace("TRACES", str(traces))
    commands = workspace / ".gemini" / "commands"
    commands.mkdir(parents=True)
    (commands / "trace.toml").write_text(f'prompt = "work 1 !{{echo 1-command >> {traces}}}"\n', encoding="utf-8")
    client = Client(workspace, PushTarget(receiver.base_url, id="push"), command)
    pushing = ("--allow-push-to", "127.0.0.1", *journal)
    for kill_after in [*(chance.randrange(1, 9) for _ in range(KILLS)), None]:
        async with serve_program(tmp_path, workspace, *pushing, script=script) as server:
            if await client.watch(server, kill_after):
                break
    async with serve_program(tmp_path, workspace, *pushing, script=script) as server:
        await eventually_async(
            lambda: pushed_states(receiver)[-1:] == [client.last_state], 60, what=str(pushed_states(receiver))
        )
        agent = await RemoteAgent.connect(server.url, server.token)
        replayed = [item async for item in (await agent.follow(client.task_id, 0)).deliveries if item.seq is not None]
        snapshot = await agent.get(client.task_id)
        await agent.aclose()
    seen = once_each(client.seen)
    # A stream that begins with its task begins after the prompt.
    expected = [(item.seq, item.event) for item in once_each(replayed) if (item.seq or 0) >= (seen[0].seq or 0)]
    assert [(item.seq, item.event) for item in seen] == expected, f"CHAOS_SEED={SEED}"
    assert isinstance(seen[-1].event, StateChange)
    assert snapshot.state is seen[-1].event.state
    found = Counter(traces.read_text(encoding="utf-8").split() if traces.exists() else [])
    assert all(count == 1 for count in found.values()), found
    changes = [str(item.event.state) for item in replayed if isinstance(item.event, StateChange)]
    assert pushed_states(receiver) == changes[-len(pushed_states(receiver)) :], f"CHAOS_SEED={SEED}"


def pushed_states(receiver: WireServer) -> list[str]:
    """Return the pushed states, each once: a state is sent again with its key if the server died just after it."""
    pushed = {request.headers["idempotency-key"]: request for request in list(receiver.requests)}
    return [request.json["status"]["state"] for request in pushed.values()]


def once_each(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Return deliveries without the questions that an input-required state repeats for clients that missed them."""
    states = {item.seq for item in deliveries if isinstance(item.event, StateChange)}
    return [item for item in deliveries if not (item.seq in states and isinstance(item.event, ToolCallUpdate))]
