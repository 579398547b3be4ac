"""Engines that work with one database: news arrive at once, work goes where there is room, and the dead are noticed.

No engine here would notice anything by itself in time: leases last ten minutes.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import Delivery, PromptMessage, Turn, UserLimits
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.followers import subscriptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.engine.runs import dispatcher
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate, event_to_json
from isthmus.internal_events import ThoughtProgress
from isthmus.journal.port.replicas import CallProgress, Member
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.postgres.journal import replicas as postgres_replicas
from isthmus.journal.postgres.statements import lock_number
from isthmus.tools.port.base import ToolKind
from support.agents import EchoAgent, GatedAgent, WaitingAgent
from support.postgres import Postgres, postgres, run_sql
from support.suspended_calls_harness import AskingTool, harness
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LEASE = 600.0
CUT_LISTENERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
    " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture
def url(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(subscriptions, "WAITING_POLL_SECONDS", 600.0)
    monkeypatch.setattr(postgres_replicas, "LOOK_SECONDS", 0.1)
    return server.database()


@contextlib.asynccontextmanager
async def replica(url: str, folder: Path, agent: Agent, placement: Placement = EVERY_TASK) -> AsyncGenerator[Engine]:
    journal = await PostgresJournal.open(url)
    options = EngineOptions(WorkspaceRule(default=folder), placement=replace(placement, lease_seconds=LEASE))
    engine = Engine(agent, journal, options)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.aclose()


async def until_met(*engines: Engine) -> None:
    """Wait until each engine knows that it is not alone."""
    for engine in engines:
        assert isinstance(engine.journal, PostgresJournal)
        replicas = engine.journal.replicas
        assert isinstance(replicas, postgres_replicas.PostgresReplicas)
        await eventually_async(lambda replicas=replicas: replicas.others and replicas.hears)


async def kill(engine: Engine) -> None:
    """Let an engine vanish from the database without a word, as when its process is killed."""
    replicas = engine.journal.replicas
    assert isinstance(replicas, postgres_replicas.PostgresReplicas)
    await replicas.vanish()


async def until_seen(deliveries: AsyncIterator[Delivery], kind: type[AgentEvent]) -> AgentEvent:
    async with asyncio.timeout(20):
        async for delivery in deliveries:
            if isinstance(delivery.event, kind):
                return delivery.event
    raise AssertionError(f"no {kind.__name__}")


async def state_of(engine: Engine, turn: Turn) -> TaskState:
    return (await engine.get(turn.task_id)).state


async def test_events_reach_followers_of_another_engine_at_once(url: str, tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with replica(url, tmp_path, agent) as first, replica(url, tmp_path, EchoAgent()) as second:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        followed = asyncio.create_task(all_of(await second.follow(turn.task_id, 0)))
        await agent.started.wait()
        agent.release.set()
        seen = await followed
        assert [item.seq for item in seen] == list(range(1, len(seen) + 1))
        assert seen[-1].event == StateChange(TaskState.COMPLETED)


async def test_a_task_is_cancelled_at_another_engine_at_once(url: str, tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with replica(url, tmp_path, agent) as first, replica(url, tmp_path, EchoAgent()) as second:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        assert (await second.cancel(turn.task_id)).state is TaskState.CANCELED
        assert agent.stopped.is_set()


async def test_a_message_to_another_engines_task_is_read_in_its_turn(url: str, tmp_path: Path) -> None:
    agent = GatedAgent()
    async with replica(url, tmp_path, agent) as first, replica(url, tmp_path, EchoAgent()) as second:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("one"))
        await eventually_async(lambda: agent.started == ["one"])
        added = await second.prompt(PromptMessage("two", task_id=turn.task_id))
        agent.let_go("one", "two")
        await all_of(added)
        assert agent.started == ["one", "two"]


async def test_progress_of_calls_and_thoughts_reaches_followers_elsewhere(url: str, tmp_path: Path) -> None:
    call = ToolCall("call", ToolCallStatus.EXECUTING, "shell", {}, live_content="half done")

    class Working(WaitingAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            await turn.emit(StateChange(TaskState.WORKING))
            await turn.emit(ThoughtProgress("Hmm"))
            await turn.emit(ToolCallUpdate(call))
            return await super().advance(turn)

    agent = Working()
    async with replica(url, tmp_path, agent) as first, replica(url, tmp_path, EchoAgent()) as second:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        followed = (await second.follow(turn.task_id, 0)).deliveries
        found = await until_seen(followed, ToolCallUpdate)
        assert isinstance(found, ToolCallUpdate)
        assert (found.tool_call, found.is_ephemeral) == (call, True)
        agent.release.set()
        await all_of(await second.follow(turn.task_id, 0))
        await eventually_async(lambda: run_sql(url, "SELECT count(*) = 0 FROM progress"))


async def test_progress_of_a_tasks_former_owner_is_not_shown(url: str, tmp_path: Path) -> None:
    """It was written late, or left behind by a process that was killed; that call may long be over."""
    old, new = (ToolCall(name, ToolCallStatus.EXECUTING, "shell", {}, live_content=name) for name in ("old", "new"))

    class Working(WaitingAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            await turn.emit(StateChange(TaskState.WORKING))
            await turn.emit(ToolCallUpdate(new))
            return await super().advance(turn)

    agent = Working()
    async with replica(url, tmp_path, agent) as first, replica(url, tmp_path, EchoAgent()) as second:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        body = json.dumps(event_to_json(ToolCallUpdate(old)))
        await run_sql(url, "INSERT INTO progress VALUES ($1, 'old', $2, $3)", turn.task_id, (1 << 32) - 1, body)
        found = await until_seen((await second.follow(turn.task_id, 0)).deliveries, ToolCallUpdate)
        assert isinstance(found, ToolCallUpdate)
        assert found.tool_call == new
        agent.release.set()
        await all_of(await second.follow(turn.task_id, 0))


async def test_older_progress_of_a_call_does_not_replace_newer(url: str, tmp_path: Path) -> None:
    async with replica(url, tmp_path, EchoAgent()) as engine:
        replicas = engine.journal.replicas
        await eventually_async(lambda: replicas.hears)

        async def written(marker: CallProgress) -> bool:
            return marker in await replicas.progress("t1", 0)

        newer, marker = CallProgress("call", 7, "newer"), CallProgress("marker", 8, "written")
        replicas.publish("t1", [newer])
        await eventually_async(lambda: written(newer))
        replicas.publish("t1", [CallProgress("call", 6, "older"), marker])
        await eventually_async(lambda: written(marker))
        assert list(await replicas.progress("t1", 0)) == [newer, marker]


async def test_a_task_that_finds_no_slot_starts_where_one_is_free(url: str, tmp_path: Path) -> None:
    busy, idle = WaitingAgent(), EchoAgent()
    one = Placement(slots=1)
    async with replica(url, tmp_path, busy, one) as first, replica(url, tmp_path, idle, one) as second:
        await until_met(first, second)
        await first.prompt(PromptMessage("long"))
        await busy.started.wait()
        turn = await first.prompt(PromptMessage("short"))
        await all_of(turn)
        assert await state_of(first, turn) is TaskState.COMPLETED


async def test_tasks_of_an_engine_that_vanished_go_on_at_another(url: str, tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with replica(url, tmp_path, EchoAgent()) as second, replica(url, tmp_path, agent) as first:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        await kill(first)
        await all_of(await second.follow(turn.task_id, 0))
        assert await state_of(second, turn) is TaskState.COMPLETED
        row = await second.journal.task(turn.task_id)
        assert row is not None
        assert row.epoch == 2
        # The first one lives after all, and has noticed by now or is refused when it writes.
        agent.release.set()
        await eventually_async(agent.stopped.is_set)
        assert (await second.journal.task(turn.task_id)) == row


async def test_an_engine_that_is_closed_hands_its_tasks_over_at_once(url: str, tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with replica(url, tmp_path, EchoAgent()) as second:
        async with replica(url, tmp_path, agent) as first:
            await until_met(first, second)
            turn = await first.prompt(PromptMessage("hi"))
            await agent.started.wait()
        await all_of(await second.follow(turn.task_id, 0))
        assert await state_of(second, turn) is TaskState.COMPLETED
        await eventually_async(lambda: run_sql(url, "SELECT count(*) = 1 FROM replicas"))


async def test_a_connection_that_is_cut_and_made_again_is_not_an_end(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = WaitingAgent()
    async with replica(url, tmp_path, agent) as first, replica(url, tmp_path, EchoAgent()) as second:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        assert await run_sql(url, CUT_LISTENERS) == 2
        await until_met(first, second)
        agent.release.set()
        await all_of(turn)
        row = await second.journal.task(turn.task_id)
        assert row is not None
        assert (row.state, row.epoch) == (TaskState.COMPLETED, 1)


async def test_an_engine_whose_connection_alone_is_cut_keeps_its_tasks(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_replicas, "LOOK_SECONDS", 0.5)
    agent = WaitingAgent()
    async with replica(url, tmp_path, EchoAgent()) as second, replica(url, tmp_path, agent) as first:
        await until_met(first, second)
        turn = await first.prompt(PromptMessage("hi"))
        await agent.started.wait()
        assert await run_sql(url, f"{CUT_LISTENERS} AND pid = ($1)", await listener_of(url, turn.task_id)) == 1
        await until_met(first, second)
        looked = asyncio.get_running_loop().time() + 1.5
        await eventually_async(lambda: asyncio.get_running_loop().time() > looked)
        row = await second.journal.task(turn.task_id)
        assert row is not None
        assert row.epoch == 1
        agent.release.set()
        await all_of(turn)


async def listener_of(url: str, task_id: str) -> int:
    """Return the database's process for the connection that listens for the owner of a task."""
    owner = await run_sql(url, "SELECT owner FROM tasks WHERE id = $1", task_id)
    locked = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32) | objid::bigint = $1"
    return int(await run_sql(url, locked, lock_number("replica", owner)))


async def test_an_engine_that_vanished_is_forgotten_when_its_tasks_have_gone_on(url: str, tmp_path: Path) -> None:
    async with replica(url, tmp_path, EchoAgent()) as second:
        journal = await PostgresJournal.open(url)
        await journal.replicas.join(Member("a process that ends", ("gpu",), 3), lambda _: None)
        assert await run_sql(url, "SELECT labels || slots FROM replicas WHERE slots = 3") == "gpu3"
        await until_met(second)
        assert isinstance(journal.replicas, postgres_replicas.PostgresReplicas)
        assert second.journal.replicas.count == 2
        await journal.replicas.vanish()
        await eventually_async(lambda: second.journal.replicas.is_gone("a process that ends"))
        assert second.journal.replicas.count == 1
        await eventually_async(lambda: run_sql(url, "SELECT count(*) = 1 FROM replicas"))
        await journal.aclose()


async def test_an_answer_reaches_the_call_that_waits_for_it_in_another_engine(url: str, tmp_path: Path) -> None:
    asking, idle = AskingTool(kind=ToolKind.READ), AskingTool(kind=ToolKind.READ)
    first, second = [await PostgresJournal.open(url) for _ in range(2)]
    async with harness(tmp_path, asking, journal=first) as user, harness(tmp_path, idle, journal=second) as other:
        await until_met(user.engine, other.engine)
        assert await user.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        (call,) = (await other.engine.get(user.task)).pending
        answer = [ToolCallConfirmation(call.tool_call_id, "accept")]
        await all_of(await other.engine.answer(user.task, answer, answered_by="elsewhere"))
        assert (await other.engine.get(user.task)).state is TaskState.COMPLETED
        assert (asking.log, idle.log) == (["begun", "accept"], [])


# --- users with a limit of tasks at work ---

SLOTS = Placement(slots=3)
LIMITS = UserLimits(max_running=2)


async def begun(engine: Engine, count: int) -> list[Turn]:
    """Begin this many tasks of one user with a limit."""
    user = engine.for_user("alice", LIMITS)
    return [await user.prompt(PromptMessage(f"{number}")) for number in range(count)]


async def at_work(url: str) -> int:
    return int(await run_sql(url, "SELECT count(*) FROM tasks WHERE state IN ('submitted', 'working') AND tag = 0"))


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no engine notice anything by looking into the queue from time to time."""
    monkeypatch.setattr(dispatcher, "LOOK_SECONDS", 600.0)


@pytest.mark.usefixtures("no_looks")
async def test_engines_run_no_more_of_a_users_tasks_than_allowed_and_run_them_all(url: str, tmp_path: Path) -> None:
    agent = GatedAgent()
    async with replica(url, tmp_path, agent, SLOTS) as first, replica(url, tmp_path, agent, SLOTS) as second:
        await until_met(first, second)
        turns = [*await begun(first, 5), *await begun(second, 5)]
        for turn in turns:
            assert await at_work(url) <= 2
            agent.let_go(*map(str, range(10)))
            await all_of(await first.for_user("alice").follow(turn.task_id, 0))
        assert len(agent.started) == 10


@pytest.mark.usefixtures("no_looks")
async def test_the_end_of_a_task_lets_another_start_where_its_label_is(url: str, tmp_path: Path) -> None:
    """The engine at which the first one ends cannot run what waits."""
    agent, limits = GatedAgent(), UserLimits(max_running=1)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    folders = ((there, "gpu"),)
    plain, gpu = replace(SLOTS, folders=folders), replace(SLOTS, labels=("gpu",), folders=folders)
    async with replica(url, here, agent, plain) as first, replica(url, there, agent, gpu) as second:
        await until_met(first, second)
        await first.for_user("alice", limits).prompt(PromptMessage("one"))
        await eventually_async(lambda: agent.started == ["one"])
        turn = await second.for_user("alice", limits).prompt(PromptMessage("two"))
        assert (await second.for_user("alice").get(turn.task_id)).state is TaskState.SUBMITTED
        agent.let_go("one", "two")
        await all_of(turn)
        assert agent.started == ["one", "two"]


async def test_tasks_of_an_engine_that_vanished_count_until_they_are_done(url: str, tmp_path: Path) -> None:
    stuck, agent = GatedAgent(), GatedAgent()
    async with replica(url, tmp_path, agent, SLOTS) as second, replica(url, tmp_path, stuck, SLOTS) as first:
        await until_met(first, second)
        turns = await begun(first, 4)
        await eventually_async(lambda: len(stuck.started) == 2)
        await kill(first)
        await eventually_async(lambda: len(agent.started) == 2)
        assert sorted(agent.started) == ["0", "1"]
        assert await at_work(url) == 2
        agent.let_go("0", "1", "2", "3")
        for turn in turns:
            await all_of(await second.for_user("alice").follow(turn.task_id, 0))
        assert sorted(agent.started) == ["0", "1", "2", "3"]
