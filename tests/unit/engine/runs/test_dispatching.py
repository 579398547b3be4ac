"""Tasks that wait for a slot: they start in turn, take answers and messages, and outlive the process."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage, Turn
from isthmus.engine import Engine
from isthmus.engine.port.placement import Placement
from isthmus.engine.runs.dispatcher import Dispatcher
from isthmus.engine.runs.slots import Slots
from isthmus.engine.runs.take_over_rule import TakeOverRule
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import ClaimedTask, NewTask
from support.agents import GatedAgent
from support.engines import engine_on, events
from support.journals import journal_at
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

ONE = Placement(slots=1)


async def prompt(engine: Engine, text: str, task: str | None = None) -> Turn:
    return await engine.prompt(PromptMessage(text, task_id=task))


async def state_of(engine: Engine, turn: Turn) -> TaskState:
    return (await engine.get(turn.task_id)).state


async def until_started(agent: GatedAgent, *prompts: str) -> None:
    await eventually_async(lambda: agent.started == [*prompts])


async def test_a_task_without_a_slot_waits_until_one_is_free(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        first, second = await prompt(engine, "one"), await prompt(engine, "two")
        await until_started(agent, "one")
        assert second.snapshot.state is TaskState.SUBMITTED
        assert await state_of(engine, second) is TaskState.SUBMITTED
        agent.let_go("one", "two")
        assert (await all_of(first))[-1].event == (await all_of(second))[-1].event
        assert agent.started == ["one", "two"]


async def test_waiting_tasks_are_not_overtaken_when_a_slot_becomes_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, looks = GatedAgent(), asyncio.Event()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        take = engine.journal.queue.take

        async def take_late(*arguments: Any) -> Sequence[ClaimedTask]:
            await looks.wait()
            return await take(*arguments)

        monkeypatch.setattr(engine.journal.queue, "take", take_late)
        first = await prompt(engine, "one")
        await prompt(engine, "two")
        agent.let_go("one", "two", "three")
        await all_of(first)
        third = await prompt(engine, "three")  # the slot is free, and the queue has not been looked at yet
        looks.set()
        await all_of(third)
        assert agent.started == ["one", "two", "three"]


async def test_a_task_that_waits_for_a_user_needs_no_slot(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        asking = await prompt(engine, "ask")
        agent.let_go("ask", "other")
        await all_of(asking)
        await all_of(await prompt(engine, "other"))
        assert await state_of(engine, asking) is TaskState.INPUT_REQUIRED


async def test_an_answered_task_waits_for_a_slot_and_goes_on(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        asking = await prompt(engine, "ask")
        agent.let_go("ask")
        await all_of(asking)
        busy = await prompt(engine, "busy")
        answered = await prompt(engine, "answer", asking.task_id)
        assert await state_of(engine, asking) is TaskState.WORKING
        await until_started(agent, "ask", "busy")
        agent.let_go("busy", "answer")
        await all_of(busy)
        await all_of(answered)
        assert await state_of(engine, asking) is TaskState.COMPLETED


async def test_a_message_to_a_waiting_task_is_read_when_it_runs(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        await prompt(engine, "one")
        second = await prompt(engine, "two")
        besides = await prompt(engine, "besides", second.task_id)
        agent.let_go("one", "two", "besides")
        await all_of(besides)
        assert agent.started == ["one", "two", "besides"]


async def test_a_message_for_the_work_under_way_may_come_while_the_task_waits(tmp_path: Path) -> None:
    class Steered(GatedAgent):
        async def advance(self, turn: AgentTurn) -> StateChange:
            end = await super().advance(turn)
            steered.append(await turn.takes_steering())
            return end

    agent, steered = Steered(), list[bool]()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        first, second = await prompt(engine, "one"), await prompt(engine, "two")
        await engine.prompt(PromptMessage("besides", task_id=second.task_id, is_steering=True))
        agent.let_go("one", "two")
        await all_of(first)
        await all_of(second)
        assert steered == [False, True]


async def test_a_free_slot_is_kept_for_the_tasks_that_wait(tmp_path: Path) -> None:
    async def nothing(*_: object) -> None: ...

    journal, slots = await journal_at(tmp_path / "journal.sqlite"), Slots(1)
    rule = TakeOverRule(journal, "owner", 20.0)
    dispatcher = Dispatcher(
        journal, "owner", QueueScope(), slots, 20.0, rule, begin=lambda _: None, resume_child=nothing, renew=nothing
    )
    assert dispatcher.may_begin("")
    assert not dispatcher.may_begin("gpu")
    dispatcher.queued()
    assert not dispatcher.may_begin("")
    await dispatcher.take()
    assert dispatcher.may_begin("")
    dispatcher.is_draining = True
    assert not dispatcher.may_begin("")
    await journal.aclose()


async def test_a_waiting_task_is_cancelled_though_no_slot_is_free(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        first, second = await prompt(engine, "one"), await prompt(engine, "two")
        assert (await engine.cancel(second.task_id)).state is TaskState.CANCELED
        await until_started(agent, "one")
        third = await prompt(engine, "three")
        agent.let_go("one", "three")
        await all_of(first)
        await all_of(third)
        assert agent.started == ["one", "three"]


async def test_a_follower_sees_a_waiting_task_begin(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        await prompt(engine, "one")
        second = await prompt(engine, "two")
        followed = await engine.follow(second.task_id, 0)
        agent.let_go("one", "two")
        seen = events(await all_of(followed))
        assert [event.state for event in seen if isinstance(event, StateChange)] == ["working", "completed"]


async def test_users_take_turns(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        alice, bob = engine.for_user("alice"), engine.for_user("bob")
        for text in ("a1", "a2", "a3"):
            await alice.prompt(PromptMessage(text))
        turns = [await bob.prompt(PromptMessage(text)) for text in ("b1", "b2")]
        agent.let_go("a1", "a2", "a3", "b1", "b2")
        await asyncio.gather(*map(all_of, turns))
        await eventually_async(lambda: len(agent.started) == 5)
        assert agent.started == ["a1", "a2", "b1", "a3", "b2"]


async def test_subagents_tasks_need_no_slot(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        parent = await prompt(engine, "parent")
        await until_started(agent, "parent")
        child = NewTask("child", "child", str(tmp_path), "part", parent=parent.task_id)
        await engine.journal.create(child, [Prompt("m1", "part")], "a process that ended", 0.0)
        agent.let_go("part")
        await all_of(await engine.follow("child", 0))
        assert agent.started == ["parent", "part"]
        agent.let_go("parent")


async def test_a_drained_engine_leaves_what_comes_in_to_the_next_one(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent) as engine:
        running = await prompt(engine, "running")
        await until_started(agent, "running")
        drained = asyncio.create_task(engine.runner.drain(30))
        await asyncio.sleep(0)
        late = await prompt(engine, "late")
        assert not drained.done()
        agent.let_go("running", "late")
        await all_of(running)
        await drained
        assert await state_of(engine, late) is TaskState.SUBMITTED
    assert agent.started == ["running"]
    async with engine_on(tmp_path, agent) as engine:
        await all_of(await engine.follow(late.task_id, 0))
        assert await state_of(engine, late) is TaskState.COMPLETED


async def test_a_drain_ends_in_time_and_leaves_long_work_to_the_next_one(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent) as engine:
        long = await prompt(engine, "long")
        await until_started(agent, "long")
        await engine.runner.drain(0.01)
    agent.let_go("long")
    async with engine_on(tmp_path, agent) as engine:
        await all_of(await engine.follow(long.task_id, 0))
        assert await state_of(engine, long) is TaskState.COMPLETED


async def test_a_task_with_a_label_waits_for_an_engine_that_has_it(tmp_path: Path) -> None:
    agent = GatedAgent()
    agent.let_go("train")
    without = Placement(folders=((tmp_path, "gpu"),))
    async with engine_on(tmp_path, agent, placement=without) as engine:
        turn = await prompt(engine, "train")
        assert await state_of(engine, turn) is TaskState.SUBMITTED
        followed = await engine.follow(turn.task_id, 0)
        assert followed.snapshot.state is TaskState.SUBMITTED
    with_it = Placement(labels=("gpu",), folders=((tmp_path, "gpu"),))
    async with engine_on(tmp_path, agent, placement=with_it) as engine:
        await all_of(await engine.follow(turn.task_id, 0))
        assert await state_of(engine, turn) is TaskState.COMPLETED


async def test_a_refused_task_gives_its_slot_back(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=ONE) as engine:
        message = PromptMessage("one", message_id="m1")
        first = await engine.prompt(message)
        agent.let_go("one", "two")
        await all_of(first)
        assert (await engine.prompt(message)).task_id == first.task_id
        await all_of(await prompt(engine, "two"))
