"""Users with a limit of tasks at work: what waits by it, what is refused, and what goes on regardless of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import AllAtWork, LimitReached, PromptMessage, Turn, UserLimits
from isthmus.engine import Engine
from isthmus.engine.port.placement import Placement
from isthmus.engine.runs import dispatcher
from isthmus.events import StateChange, TaskState
from isthmus.tools.port.base import ToolKind
from support.agents import AskingAgent, GatedAgent
from support.engines import engine_on, events, once
from support.suspended_calls_harness import AskingTool, harness
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

MANY = Placement(slots=6)
"""More slots than any user here may have tasks at work."""
DONE = StateChange(TaskState.COMPLETED)


@pytest.fixture(autouse=True)
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no engine notice anything by looking into the queue from time to time."""
    monkeypatch.setattr(dispatcher, "LOOK_SECONDS", 600.0)


@dataclass
class CountingAgent:
    """An agent that yields to others while it works; ``most`` is the highest number of tasks that did so at once."""

    at_work: int = 0
    most: int = 0

    async def advance(self, turn: AgentTurn) -> StateChange:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        await turn.emit(StateChange(TaskState.WORKING))
        for _ in range(10):
            await asyncio.sleep(0)
        self.at_work -= 1
        return DONE


@dataclass
class Prompts:
    """The prompts of one user."""

    engine: Engine
    name: str
    limits: UserLimits
    turns: list[Turn] = field(default_factory=list[Turn])

    async def send(self, *texts: str, task: str | None = None) -> Turn:
        user = self.engine.for_user(self.name, self.limits)
        self.turns += [await user.prompt(PromptMessage(text, task_id=task)) for text in texts]
        return self.turns[-1]

    async def states(self) -> Sequence[TaskState]:
        user = self.engine.for_user(self.name, self.limits)
        return [(await user.get(turn.task_id)).state for turn in self.turns]


async def test_tasks_beyond_the_limit_wait_though_slots_are_free_and_all_are_done(tmp_path: Path) -> None:
    agent = CountingAgent()
    async with engine_on(tmp_path, agent, placement=MANY) as engine:
        alice = Prompts(engine, "alice", UserLimits(max_tasks=20, max_running=2))
        await alice.send(*(f"work {number}" for number in range(20)))
        for turn in alice.turns:
            assert events(await all_of(turn))[-1] == DONE
    assert agent.most == 2


async def test_what_waits_by_its_users_limit_holds_no_other_user_up(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=MANY) as engine:
        alice, bob = (Prompts(engine, name, UserLimits(max_running=2)) for name in ("alice", "bob"))
        await alice.send("a1", "a2", "a3", "a4")
        await bob.send("b1")
        await eventually_async(lambda: len(agent.started) == 3)
        assert agent.started == ["a1", "a2", "b1"]
        agent.let_go("a1", "b1")
        await eventually_async(lambda: len(agent.started) == 4)
        await bob.send("b2")
        await eventually_async(lambda: len(agent.started) == 5)
        assert agent.started[3:] == ["a3", "b2"]
        agent.let_go("a2", "a3", "a4", "b2")
        await all_of(alice.turns[-1])


async def test_a_limit_of_all_tasks_remains_for_those_that_wait(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=MANY) as engine:
        alice = Prompts(engine, "alice", UserLimits(max_tasks=4, max_running=1))
        await alice.send("a1", "a2", "a3", "a4")
        with pytest.raises(LimitReached, match=r"you have 4 tasks .*; the limit is 4"):
            await alice.send("a5")


async def test_a_cancelled_task_makes_room_for_one_that_waits(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=MANY) as engine:
        alice = Prompts(engine, "alice", UserLimits(max_running=1))
        await alice.send("a1", "a2", "a3")
        user = engine.for_user("alice")
        assert (await user.cancel(alice.turns[1].task_id)).state is TaskState.CANCELED
        await eventually_async(lambda: agent.started == ["a1"])
        assert (await user.cancel(alice.turns[0].task_id)).state is TaskState.CANCELED
        await eventually_async(lambda: agent.started == ["a1", "a3"])


@pytest.mark.parametrize("placement", [MANY, Placement()], ids=["slots", "no slots"])
async def test_an_answer_is_not_refused_and_waits_until_fewer_tasks_work(tmp_path: Path, placement: Placement) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent, placement=placement) as engine:
        alice = Prompts(engine, "alice", UserLimits(max_running=2))
        agent.let_go("ask")
        asking = await alice.send("ask")
        await all_of(asking)
        await alice.send("a1", "a2")
        answered = await alice.send("answer", task=asking.task_id)
        assert answered.snapshot.state is TaskState.WORKING
        await eventually_async(lambda: len(agent.started) == 3)
        assert agent.started == ["ask", "a1", "a2"]
        agent.let_go("a2", "answer")
        assert events(await all_of(answered))[-1] == DONE


async def test_answers_are_taken_while_many_tasks_are_queued(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent, placement=Placement(slots=3)) as engine:
        alice = Prompts(engine, "alice", UserLimits(max_running=2))
        await alice.send(*(f"work {number}" for number in range(9)))
        for turn in alice.turns:
            await all_of(turn)
        user = engine.for_user("alice", alice.limits)
        answers = [await user.answer(turn.task_id, once("one"), answered_by="alice") for turn in alice.turns]
        for answer in answers:
            assert events(await all_of(answer))[-1] == DONE
    assert len(agent.ran) == 9


async def test_without_slots_a_new_task_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    agent = GatedAgent()
    async with engine_on(tmp_path, agent) as engine:
        alice = Prompts(engine, "alice", UserLimits(max_running=1))
        await alice.send("a1")
        with pytest.raises(AllAtWork, match="1 of your tasks are working; the limit is 1 at once"):
            await alice.send("a2")
        assert await alice.states() == [TaskState.WORKING]


async def test_an_answer_that_a_call_waits_for_here_goes_on_at_once(tmp_path: Path) -> None:
    """The call is under way: it would be lost if its task waited for long."""
    tool = AskingTool(kind=ToolKind.READ)
    async with harness(tmp_path, tool) as user:
        assert await user.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        row = await user.engine.journal.task(user.task)
        assert row is not None
        (call,) = row.pending
        limited = user.engine.for_user("", UserLimits(max_running=0))
        await all_of(await limited.answer(user.task, once(call.tool_call_id, "accept"), answered_by="alice"))
        assert (await user.engine.get(user.task)).state is TaskState.COMPLETED
