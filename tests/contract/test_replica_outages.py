"""Engines whose way to the database is cut: who takes tasks over, when, and what the user reads then."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from isthmus.agent.hosted import HostedAgent
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentEvent, AgentMessage, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.base import StaleLease
from isthmus.journal.port.task_rows import Lease, NewTask, TaskRow
from isthmus.journal.postgres.journal import PostgresJournal
from support.agents import EchoAgent, WaitingAgent
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.journal_tasks import texts
from support.postgres import Postgres, postgres, run_sql
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LEASE = 2.0
ALL_LEASES_RAN_OUT = "SELECT bool_and(lease_until < extract(epoch FROM now())) FROM tasks"
ELSEWHERE = "one:another machine:1:1"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture
def url(server: Postgres) -> str:
    return server.database()


@dataclass
class Replica:
    engine: Engine
    proxy: CuttingProxy

    def cut(self) -> None:
        """Keep the database away."""
        self.proxy.cut_after = 0
        self.proxy.cut()

    def reconnect(self) -> None:
        self.proxy.cut_after = None
        self.proxy.cut()


@contextlib.asynccontextmanager
async def replica(url: str, folder: Path, agent: Agent) -> AsyncGenerator[Replica]:
    host = url.partition("@")[2].partition("/")[0] or url.partition("//")[2].partition("/")[0]
    async with cutting_proxy(f"http://{host}/") as proxy:
        journal = await PostgresJournal.open(url.replace(host, proxy.url.removeprefix("http://").rstrip("/")))
        options = EngineOptions(WorkspaceRule(default=folder), placement=Placement(lease_seconds=LEASE))
        engine = Engine(agent, journal, options)
        await engine.start()
        try:
            yield Replica(engine, proxy)
        finally:
            await engine.aclose()


class Building(WaitingAgent):
    """Runs a call until it may end."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        await turn.emit(ToolCallUpdate(ToolCall("call", ToolCallStatus.EXECUTING, "build", {})))
        return await super().advance(turn)


class Telling:
    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield AgentMessage("", "Done.")


async def row_of(url: str, turn: Turn) -> TaskRow:
    journal = await PostgresJournal.open(url)
    try:
        row = await journal.task(turn.task_id)
        assert row is not None
        return row
    finally:
        await journal.aclose()


async def test_a_task_of_an_engine_that_is_cut_off_is_taken_over_and_says_so(url: str, tmp_path: Path) -> None:
    agent = Building()
    async with replica(url, tmp_path, HostedAgent(Telling())) as second, replica(url, tmp_path, agent) as first:
        turn = await first.engine.prompt(PromptMessage("hi"))
        await agent.started.wait()
        before = await row_of(url, turn)
        first.cut()
        seen = [item.event for item in await all_of(await second.engine.follow(turn.task_id, 0))]
        (failed,) = [item.tool_call for item in seen if isinstance(item, ToolCallUpdate) and item.tool_call.error]
        assert failed.error is not None
        assert failed.status is ToolCallStatus.FAILED
        assert "build was interrupted when another server took the task over" in failed.error.message
        assert "process ended" not in failed.error.message
        first.reconnect()
        await eventually_async(agent.stopped.is_set)
        old = Lease(turn.task_id, before.owner or "", before.epoch)
        assert (await row_of(url, turn)).epoch == before.epoch + 1
        with pytest.raises(StaleLease):
            await first.engine.journal.append(old, texts("late"))


async def test_engines_that_come_back_one_after_the_other_keep_their_tasks(url: str, tmp_path: Path) -> None:
    one, other = Building(), Building()
    async with replica(url, tmp_path, one) as first, replica(url, tmp_path, other) as second:
        turns = [await each.engine.prompt(PromptMessage("hi")) for each in (first, second)]
        await asyncio.gather(one.started.wait(), other.started.wait())
        first.cut()
        second.cut()
        await eventually_async(lambda: run_sql(url, ALL_LEASES_RAN_OUT))
        second.reconnect()
        await eventually_async(lambda: is_held(url, turns[1]))
        first.reconnect()
        await eventually_async(lambda: is_held(url, turns[0]))
        one.release.set()
        other.release.set()
        rows = [await ended(url, turn) for turn in turns]
        assert [(row.state, row.epoch) for row in rows] == [(TaskState.COMPLETED, 1)] * 2


async def is_held(url: str, turn: Turn) -> bool:
    """Return whether a task has a lease that has not run out."""
    left = "SELECT lease_until - extract(epoch FROM clock_timestamp()) FROM tasks WHERE id = $1"
    return float(await run_sql(url, left, turn.task_id)) > 0


async def ended(url: str, turn: Turn) -> TaskRow:
    await eventually_async(lambda: run_sql(url, "SELECT owner IS NULL FROM tasks WHERE id = $1", turn.task_id))
    return await row_of(url, turn)


async def test_a_new_engine_leaves_a_lease_that_ran_out_to_its_owner_for_a_lease(url: str, tmp_path: Path) -> None:
    journal = await PostgresJournal.open(url)
    task = NewTask("t1", "c1", str(tmp_path), "Fix it")
    taken = await journal.create(task, [], ELSEWHERE, 0.01)
    await journal.release([(await journal.create(NewTask("t2", "c2", str(tmp_path), "It"), [], ELSEWHERE, 1)).lease])
    begun = time.monotonic()
    async with replica(url, tmp_path, EchoAgent()) as new:
        await all_of(await new.engine.follow("t2", 0))
        assert await journal.renew([taken.lease], 0.01) == []
        await all_of(await new.engine.follow("t1", 0))
        assert time.monotonic() - begun >= LEASE
        with pytest.raises(StaleLease):
            await journal.append(taken.lease, texts("late"))
    await journal.aclose()
