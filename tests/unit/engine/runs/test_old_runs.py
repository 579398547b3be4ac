"""Runs of a task that another run has replaced, in the same process: their ends change nothing of the new one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import InvalidRequest, PromptMessage
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.engine.runs.lease_keeper import LeaseKeeper
from isthmus.engine.runs.segment import RunningSegment
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.task_rows import Lease
from support.agents import AskingAgent, WaitingAgent
from support.engines import engine_on, events, once
from support.turns import all_of
from support.waiting import eventually_async

if TYPE_CHECKING:
    from isthmus.journal.port.base import Journal

pytestmark = pytest.mark.anyio

OLD, NEW = Lease("t1", "owner-a", 1), Lease("t1", "owner-a", 3)


class _LosingJournal:
    """A journal in which leases are lost while they are renewed, and a run with a new one begins meanwhile."""

    def __init__(self, runs: dict[str, RunningSegment], lost: Lease, then: Lease) -> None:
        self._runs = runs
        self._lost = lost
        self._then = then

    async def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Sequence[Lease]:
        self._runs["t1"] = run_with(self._then)
        return [self._lost]


def run_with(lease: Lease) -> RunningSegment:
    return cast("RunningSegment", SimpleNamespace(lease=lease))


@pytest.mark.parametrize(("then", "ends"), [(OLD, True), (NEW, False)], ids=["the same run", "the next run"])
async def test_a_lost_lease_ends_the_run_that_had_it_and_no_later_one(then: Lease, ends: bool) -> None:
    runs = {"t1": run_with(OLD)}
    work = asyncio.create_task(asyncio.Event().wait())
    journal = cast("Journal", _LosingJournal(runs, OLD, then))
    keeper = LeaseKeeper(journal, runs, {"t1": cast("asyncio.Task[None]", work)}, 20.0)
    await keeper.renew()
    assert bool(work.cancelling()) == ends
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def test_a_run_that_ends_late_leaves_the_next_run_of_its_task_alone(tmp_path: Path) -> None:
    """Another process took the task over and let it rest; its user went on here before the first run had ended."""

    agents = [WaitingAgent(), WaitingAgent()]
    runs = iter(agents)

    class EachRun:
        async def advance(self, turn: AgentTurn) -> StateChange:
            return await next(runs).advance(turn)

    async with engine_on(tmp_path, EachRun()) as engine:
        turn = await engine.prompt(PromptMessage("begin"))
        await agents[0].started.wait()
        row = await engine.journal.task(turn.task_id)
        assert row is not None
        elsewhere = await engine.journal.take_over(row, "another process", 20)
        assert elsewhere is not None
        await engine.journal.finish(elsewhere.lease, [StateChange(TaskState.INPUT_REQUIRED)], [])
        await engine.prompt(PromptMessage("go on", task_id=turn.task_id))
        await agents[1].started.wait()
        old = [task for task in asyncio.all_tasks() if task.get_name() == f"isthmus-task-{turn.task_id}"]
        assert len(old) == 2
        agents[0].release.set()
        await eventually_async(lambda: any(task.done() for task in old))
        assert engine.running == 1
        assert (await engine.cancel(turn.task_id)).state is TaskState.CANCELED


async def test_an_answer_to_a_call_that_does_not_wait_is_not_recorded(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        row = await engine.journal.task(turn.task_id)
        assert row is not None
        gone = ConfirmationAccepted(ToolCallConfirmation("gone", "proceed_once"), "an old page")
        await engine.journal.post(row, [gone])
        agent.release.set()
        kept = events(await all_of(await engine.follow(turn.task_id, 0)))
        assert [type(event) for event in kept if not isinstance(event, Prompt)] == [StateChange] * 3
        assert list(await engine.journal.inbox(turn.task_id)) == []


async def test_a_call_whose_answer_waits_in_the_inbox_is_not_answered_again(tmp_path: Path) -> None:
    running, release = asyncio.Event(), asyncio.Event()

    class Slow(AskingAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            async def keep(event: AgentEvent) -> None:
                await turn.keep(event)
                if isinstance(event, ToolCallUpdate) and event.tool_call.status is ToolCallStatus.EXECUTING:
                    running.set()
                    await release.wait()

            return await super().advance(AgentTurn(turn.session, keep))

    async with engine_on(tmp_path, Slow(("one", "two"))) as engine:
        turn = await engine.prompt(PromptMessage("do both"))
        await all_of(turn)
        await engine.answer(turn.task_id, once("one"), answered_by="test")
        await running.wait()
        await engine.answer(turn.task_id, once("two"), answered_by="first")
        with pytest.raises(InvalidRequest, match=r"two of task .* is not waiting for an answer"):
            await engine.answer(turn.task_id, once("two", "cancel"), answered_by="second")
        release.set()
        await eventually_async(lambda: engine.running == 0)
        assert (await engine.get(turn.task_id)).state is TaskState.COMPLETED
