import asyncio
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.journal.port.base import JournalError
from support.agents import WaitingAgent
from support.engines import engine_on
from support.failing_journals import FullDisk, HeldWrites
from support.journals import journal_at
from support.turns import all_of

pytestmark = pytest.mark.anyio


class RunningAgent:
    """An agent that sends a text, and runs one call when the test says so."""

    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        call = ToolCall("one", ToolCallStatus.EXECUTING, "touch", {})
        for number in range(5):
            await turn.emit(TextContent(f"{number}", "words"))
        await self.release.wait()
        await turn.emit(ToolCallUpdate(call))
        await asyncio.Event().wait()
        return StateChange(TaskState.COMPLETED)


class StubbornAgent:
    """An agent that does not end at an interruption."""

    def __init__(self, error: Exception | None = None) -> None:
        self.started = asyncio.Event()
        self._error = error

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._error is not None:
                raise self._error from None
        await turn.emit(TextContent("m", "still here"))
        return StateChange(TaskState.COMPLETED)


async def test_followers_of_a_task_cancelled_while_a_call_is_kept_get_each_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await journal_at(tmp_path / "journal.sqlite")
    held = HeldWrites(journal, monkeypatch)
    agent = RunningAgent()
    engine = Engine(agent, journal, EngineOptions(WorkspaceRule(tmp_path)))
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    following = asyncio.create_task(all_of(turn))
    async for delivery in (await engine.follow(turn.task_id, 0)).deliveries:
        if isinstance(delivery.event, TextContent) and delivery.event.message_id == "4":
            break
    agent.release.set()
    assert await asyncio.to_thread(held.begun.wait, 10)
    cancelling = asyncio.create_task(engine.cancel(turn.task_id))
    for _ in range(5):
        await journal.task(turn.task_id)  # Reads go in turn: the cancellation has read and interrupted by now.
    held.go_on.set()
    assert (await cancelling).state is TaskState.CANCELED
    seen = [item.seq for item in await following]
    kept = [item.seq for item in await journal.events(turn.task_id, 1, 100)]
    assert seen == kept
    await engine.aclose()


@pytest.mark.parametrize("error", [None, ConnectionError("lost")], ids=["goes on", "raises"])
async def test_an_agent_that_does_not_obey_an_interruption_is_canceled_all_the_same(
    tmp_path: Path, error: Exception | None
) -> None:
    agent = StubbornAgent(error)
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        assert (await engine.cancel(turn.task_id)).state is TaskState.CANCELED
        last = (await all_of(turn))[-1].event
        assert last == StateChange(TaskState.CANCELED)


async def test_a_task_that_could_not_be_kept_is_canceled_without_waiting_for_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = WaitingAgent()
    journal = await journal_at(tmp_path / "journal.sqlite")
    disk = FullDisk(journal, monkeypatch, "finish")
    engine = Engine(agent, journal, EngineOptions(WorkspaceRule(tmp_path), placement=Placement(lease_seconds=600)))
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    await agent.started.wait()
    disk.is_full = True
    agent.release.set()
    with pytest.raises(JournalError, match="the disk is full"):
        await all_of(turn)
    disk.is_full = False
    assert (await engine.cancel(turn.task_id)).state is TaskState.CANCELED
    await engine.aclose()
