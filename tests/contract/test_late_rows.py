"""Two engines with one journal that hands out old rows: the first answer wins, and nothing is lost or done twice."""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage, TaskError, TaskSnapshot, Turn
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.base import Journal
from support.agents import AskingAgent
from support.journals import KINDS, JournalPlace, PostgresPlace, SqlitePlace
from support.late_rows import LateRows
from support.waiting import eventually_async

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CALLS = ("one", "two")
_NUMBERS = itertools.count()

engines = st.sampled_from((0, 1))
actions = st.one_of(
    st.tuples(st.just("answer"), engines, st.sampled_from(CALLS), st.sampled_from(("proceed_once", "cancel"))),
    st.tuples(st.just("answer twice"), engines, st.sampled_from(CALLS)),
    st.tuples(st.just("say"), engines),
    st.tuples(st.just("say twice"), engines),
    st.tuples(st.just("look"), engines),
    st.tuples(st.just("cancel"), engines),
)
groups = st.lists(st.tuples(st.booleans(), st.lists(actions, min_size=1, max_size=5)), min_size=1, max_size=5)
"""Actions at the same time, and whether calls that run meanwhile are held until these are done."""


@dataclass
class HeldAgent(AskingAgent):
    """An agent whose calls begin to run, and go on when ``gate`` is set."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def advance(self, turn: AgentTurn) -> StateChange:
        async def keep(event: AgentEvent) -> None:
            await turn.keep(event)
            if isinstance(event, ToolCallUpdate) and event.tool_call.status is ToolCallStatus.EXECUTING:
                await self.gate.wait()

        return await super().advance(AgentTurn(turn.session, keep))


@dataclass
class Pair:
    """Two engines with an agent of their own each, whose journals are the same, and the journal without delay."""

    engines: Sequence[Engine]
    agents: Sequence[HeldAgent]
    late: Sequence[LateRows]
    journal: Journal

    def hold(self, *, is_held: bool) -> None:
        """Let calls that begin to run wait, or go on."""
        for agent in self.agents:
            if is_held:
                agent.gate.clear()
            else:
                agent.gate.set()

    @property
    def ran(self) -> Counter[str]:
        """Number of times that each call had its effect."""
        return Counter(call for agent in self.agents for call in agent.ran)


@dataclass
class Story:
    """A task of a pair with two questions, and everything that was done to it and accepted."""

    pair: Pair
    task_id: str = ""
    prompts: list[str] = field(default_factory=list[str])
    answers: list[ToolCallConfirmation] = field(default_factory=list[ToolCallConfirmation])
    is_cancelled: bool = False

    async def begin(self) -> None:
        """Ask both questions."""
        turn = await self.pair.engines[0].prompt(PromptMessage("do both", message_id=f"first {next(_NUMBERS)}"))
        self.task_id = turn.task_id
        await self.rest()

    async def rest(self) -> None:
        """Wait until nothing runs, and nothing waits in the inbox."""

        async def is_at_rest() -> bool:
            row = await self.pair.journal.task(self.task_id)
            return row is not None and row.owner is None and not row.is_queued and not await self.inbox()

        await eventually_async(is_at_rest, 15, what="the task is at rest")

    async def inbox(self) -> Sequence[object]:
        return await self.pair.journal.inbox(self.task_id)

    async def act(self, action: tuple[object, ...]) -> None:
        """Do one thing; a refusal is one that a client may see."""
        kind, at, *given = action
        engine = self.pair.engines[int(str(at))]
        try:
            match kind, *given:
                case "answer", call, option:
                    answer = ToolCallConfirmation(str(call), str(option))
                    await self._answer(engine, answer)
                    self.answers.append(answer)
                case "say", *_:
                    await self._say(engine, f"more {next(_NUMBERS)}")
                case "answer twice", call:
                    answer, message = ToolCallConfirmation(str(call), "proceed_once"), f"twice {next(_NUMBERS)}"
                    if await self._at_both(lambda each: self._answer(each, answer, message)):
                        self.answers.append(answer)
                case "say twice", *_:
                    message = f"twice {next(_NUMBERS)}"
                    await self._at_both(lambda each: self._say(each, message))
                case "look", *_:
                    assert (await engine.get(self.task_id)).task_id == self.task_id
                case _:
                    assert isinstance(await engine.cancel(self.task_id), TaskSnapshot)
                    self.is_cancelled = True
        except TaskError:
            pass

    async def act_at_once(self, group: Sequence[tuple[object, ...]], *, is_held: bool) -> None:
        """Do several things at the same time, and check what came of it once the task rests."""
        self.pair.hold(is_held=is_held)
        doing = [asyncio.create_task(self.act(action)) for action in group]
        # A task that another process runs is cancelled when that process looks, or its run ends.
        if others := [task for task, action in zip(doing, group, strict=True) if action[0] != "cancel"]:
            await asyncio.wait(others)
        self.pair.hold(is_held=False)
        _check_clean(await asyncio.gather(*doing, return_exceptions=True))
        await self.rest()
        await self.check()

    async def _at_both(self, act: Callable[[Engine], Awaitable[None]]) -> bool:
        """Send the same message to both engines, as a client whose response was lost; return whether one took it."""
        found = await asyncio.gather(*map(act, self.pair.engines), return_exceptions=True)
        _check_clean(found)
        return None in found

    async def _answer(self, engine: Engine, answer: ToolCallConfirmation, message: str = "") -> None:
        await engine.answer(self.task_id, [answer], answered_by="test", message_id=message)

    async def _say(self, engine: Engine, message: str) -> None:
        turn = await engine.prompt(PromptMessage(message, task_id=self.task_id, message_id=message))
        assert isinstance(turn, Turn)
        if message not in self.prompts:
            self.prompts.append(message)

    async def check(self) -> None:
        """Check the journal against what was accepted."""
        row = await self.pair.journal.task(self.task_id)
        assert row is not None
        kept = await self.pair.journal.events(self.task_id, 0, 10_000)
        assert [item.seq for item in kept] == list(range(1, row.seq + 1))
        events = [item.event for item in kept]
        recorded = [event.confirmation for event in events if isinstance(event, ConfirmationAccepted)]
        calls = Counter(answer.tool_call_id for answer in recorded)
        assert all(count == 1 for count in calls.values()), f"answered twice: {recorded}"
        ran = self.pair.ran
        assert all(count == 1 for count in ran.values()), f"ran twice: {ran}"
        allowed = {answer.tool_call_id for answer in recorded if answer.selected_option_id == "proceed_once"}
        assert set(ran) <= allowed, "a call ran whose first answer was a rejection"
        messages = [event.message_id for event in events if isinstance(event, Prompt)][1:]
        assert len(messages) == len(set(messages)), f"a message was taken twice: {messages}"
        assert set(messages) <= set(self.prompts)
        if row.state is TaskState.CANCELED:
            assert self.is_cancelled
            return
        assert not self.is_cancelled
        # A message in place of an answer gives a call up: an answer that came behind it finds no question any more.
        given_up = {
            call.tool_call_id for call in _calls(events) if call.error and "a new message came" in call.error.message
        }
        accepted = [answer for answer in self.answers if answer in recorded or answer.tool_call_id not in given_up]
        assert sorted(recorded, key=str) == sorted(accepted, key=str), "an answer was lost, or two were accepted"
        assert set(messages) == set(self.prompts), "a message was lost"
        assert set(ran) == allowed


def _calls(events: Sequence[AgentEvent]) -> Sequence[ToolCall]:
    return [event.tool_call for event in events if isinstance(event, ToolCallUpdate)]


def _check_clean(results: Sequence[object]) -> None:
    for result in results:
        assert not isinstance(result, BaseException) or isinstance(result, TaskError), repr(result)


@pytest.fixture(params=KINDS)
async def pair(request: pytest.FixtureRequest, tmp_path: Path, postgres_server: "Postgres") -> AsyncIterator[Pair]:
    place: JournalPlace = SqlitePlace(tmp_path / "journal.sqlite")
    if request.param == "postgres":
        place = PostgresPlace(postgres_server.database())
    agents = [HeldAgent(CALLS), HeldAgent(CALLS)]
    options = EngineOptions(WorkspaceRule(default=tmp_path))
    late = [LateRows(await place.open()) for _ in agents]
    engines = [Engine(agent, journal.as_journal, options) for agent, journal in zip(agents, late, strict=True)]
    for engine in engines:
        await engine.start()
    journal = await place.open()
    yield Pair(engines, agents, late, journal)
    for engine in engines:
        await engine.aclose()
    await journal.aclose()


# Not made smaller: an example that fails may have waited for a task that never rests.
@settings(
    max_examples=20,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(groups)
async def test_whatever_is_done_with_old_rows_the_first_answer_wins_and_nothing_is_lost(
    pair: Pair, caplog: pytest.LogCaptureFixture, groups: Sequence[tuple[bool, Sequence[tuple[object, ...]]]]
) -> None:
    for agent in pair.agents:
        agent.ran.clear()
    story = Story(pair)
    await story.begin()
    for is_held, group in groups:
        await story.act_at_once(group, is_held=is_held)
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("is_held", [False, True], ids=["at rest", "while it runs"])
async def test_of_answers_at_two_engines_with_the_same_old_row_one_wins(pair: Pair, is_held: bool) -> None:
    for _ in range(10):
        story = Story(pair)
        await story.begin()
        for agent in pair.agents:
            agent.ran.clear()
        if is_held:
            pair.hold(is_held=True)
            await story.act(("answer", 0, "two", "proceed_once"))
        answers = [("answer", at, "one", option) for at in (0, 1) for option in ("proceed_once", "cancel")]
        await story.act_at_once(answers, is_held=is_held)
        assert len(story.answers) == 1 + is_held
    assert all(journal.late for journal in pair.late)
