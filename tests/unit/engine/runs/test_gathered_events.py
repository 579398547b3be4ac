"""Events that begin a request to a model are written with the next one, or a moment later; all others at once."""

import asyncio
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage
from isthmus.engine.runs import gathered_events
from isthmus.engine.runs.gathered_events import GatheredEvents
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent
from isthmus.internal_events import ContextNote, EnvironmentContext, PromptBegun, PromptChanged
from support.engines import engine_on
from support.turns import events_of

pytestmark = pytest.mark.anyio

ENVIRONMENT = EnvironmentContext("Linux")
BEGUN = PromptBegun("openai:m", ())
CHANGED = PromptChanged("You plan.")
TEXT = TextContent("m", "Hello")


class Writes:
    """The gathered events, write by write."""

    def __init__(self) -> None:
        self.groups: list[list[AgentEvent]] = []
        self.written = asyncio.Event()
        self.gathered = GatheredEvents()

    def add(self, event: AgentEvent) -> None:
        self.gathered.add(self._write, event)

    def _write(self) -> None:
        self.groups.append(self.gathered.take())
        self.written.set()


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let events wait for the next one without end, however slow the machine is."""
    monkeypatch.setattr(gathered_events, "REQUEST_SECONDS", 3600.0)


@pytest.mark.usefixtures("patient")
async def test_events_that_begin_a_request_wait_for_the_next_event() -> None:
    writes = Writes()
    for event in (ENVIRONMENT, BEGUN, CHANGED):
        writes.add(event)
        await turns()
    assert writes.groups == []
    assert len(writes.gathered) == 3
    writes.add(TEXT)
    await turns()
    assert writes.groups == [[ENVIRONMENT, BEGUN, CHANGED, TEXT]]


async def test_events_that_begin_a_request_do_not_wait_for_long() -> None:
    writes = Writes()
    writes.add(ENVIRONMENT)
    async with asyncio.timeout(30):
        await writes.written.wait()
    assert writes.groups == [[ENVIRONMENT]]
    writes.written.clear()
    writes.add(BEGUN)
    async with asyncio.timeout(30):
        await writes.written.wait()
    assert writes.groups == [[ENVIRONMENT], [BEGUN]]


@pytest.mark.parametrize("event", [TEXT, ContextNote("hook", "Tabs."), StateChange(TaskState.WORKING)])
async def test_other_events_of_one_turn_are_written_at_its_end(event: AgentEvent) -> None:
    writes = Writes()
    writes.add(event)
    writes.add(ENVIRONMENT)
    assert writes.groups == []
    await turns()
    assert writes.groups == [[event, ENVIRONMENT]]
    assert writes.gathered.take() == []


async def test_what_was_taken_is_not_written_again_later() -> None:
    writes = Writes()
    writes.add(TEXT)
    assert writes.gathered.take() == [TEXT]
    await turns()
    writes.add(ENVIRONMENT)
    assert writes.gathered.take() == [ENVIRONMENT]
    writes.add(TEXT)
    await turns()
    assert writes.groups == [[TEXT]]


@pytest.mark.usefixtures("patient")
async def test_a_task_writes_what_begins_its_request_with_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asking:
        async def advance(self, turn: AgentTurn) -> StateChange:
            await turn.emit(StateChange(TaskState.WORKING))
            for event in (ENVIRONMENT, BEGUN):
                await turns()
                await turn.emit(event)
            return StateChange(TaskState.COMPLETED)

    async with engine_on(tmp_path, Asking()) as engine:
        append = engine.journal.append
        groups: list[Sequence[AgentEvent]] = []

        async def noted(lease: Any, events: Sequence[AgentEvent], **options: Any) -> Any:
            groups.append(events)
            return await append(lease, events, **options)

        monkeypatch.setattr(engine.journal, "append", noted)
        turn = await engine.prompt(PromptMessage("begin"))
        seen = await events_of(turn)
        assert seen[-4:] == [StateChange(TaskState.WORKING), ENVIRONMENT, BEGUN, StateChange(TaskState.COMPLETED)]
        assert groups == [[StateChange(TaskState.WORKING)]]


async def test_nothing_is_kept_of_who_writes() -> None:
    writes = Writes()
    writes.add(ENVIRONMENT)
    writes.add(TEXT)
    await turns()
    writes.add(BEGUN)
    writes.gathered.take()
    gone, gathered = weakref.ref(writes), writes.gathered
    del writes
    assert gone() is None
    assert len(gathered) == 0
