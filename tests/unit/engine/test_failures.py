import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import Delivery, PromptMessage, TaskNotFound
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.retention import Retention
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentMessage, StateChange, TaskState
from isthmus.internal_events import AgentRecord
from isthmus.journal.port.base import JournalError
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on, events
from support.failing_journals import FullDisk
from support.journals import journal_at
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_followers_of_a_task_are_told_when_it_cannot_be_kept_and_it_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = WaitingAgent()
    journal = await journal_at(tmp_path / "journal.sqlite")
    disk = FullDisk(journal, monkeypatch, "finish", "release")
    engine = Engine(agent, journal, EngineOptions(WorkspaceRule(tmp_path), placement=Placement(lease_seconds=0.4)))
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    following = [asyncio.create_task(all_of(item)) for item in (turn, await engine.follow(turn.task_id))]
    await agent.started.wait()
    disk.is_full = True
    agent.release.set()
    for follower in following:
        with pytest.raises(JournalError, match="the disk is full"):
            await follower
    with pytest.raises(JournalError, match="tried again later"):
        await all_of(await engine.follow(turn.task_id))
    disk.is_full = False

    async def is_completed() -> bool:
        return (await engine.get(turn.task_id)).state is TaskState.COMPLETED

    await eventually_async(is_completed)
    await engine.aclose()


async def test_a_session_that_cannot_be_read_fails_its_task_and_not_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def undecodable(context_id: str, user: str = "") -> Sequence[tuple[str, Delivery]]:
        raise KeyError(context_id)

    journal = await journal_at(tmp_path / "journal.sqlite")
    monkeypatch.setattr(journal, "session", undecodable)
    engine = Engine(EchoAgent(), journal, EngineOptions(WorkspaceRule(tmp_path)))
    await engine.start()
    (end,) = events(await all_of(await engine.prompt(PromptMessage("go", context_id="session"))))
    assert isinstance(end, StateChange)
    assert (end.state, end.reason) == (TaskState.FAILED, "internal_error")
    await engine.aclose()


async def test_an_engine_closes_also_when_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await journal_at(tmp_path / "journal.sqlite")
    disk = FullDisk(journal, monkeypatch, "finish", "release")
    engine = Engine(WaitingAgent(), journal, EngineOptions(WorkspaceRule(tmp_path)))
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    disk.is_full = True
    await engine.aclose()
    with pytest.raises(JournalError):
        await engine.get(turn.task_id)


class UnkeepableAgent:
    """An agent that sends an event that no journal can store, when the prompt says so."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        if turn.session.prompt == "bad":
            await turn.emit(AgentRecord({"when": object()}))
        await turn.emit(AgentMessage("m", "done"))
        return StateChange(TaskState.COMPLETED)


async def test_an_event_that_cannot_be_kept_fails_its_task_and_no_other(tmp_path: Path) -> None:
    async with engine_on(tmp_path, UnkeepableAgent()) as engine:
        turns = [await engine.prompt(PromptMessage(text)) for text in ("good", "bad", "good")]
        ends = [events(await all_of(turn))[-1] for turn in turns]
        states = [end.state for end in ends if isinstance(end, StateChange)]
        assert states == [TaskState.COMPLETED, TaskState.FAILED, TaskState.COMPLETED]
        failed = await engine.get(turns[1].task_id)
        assert "AgentRecord" in (failed.error or "")
        assert (await engine.prompt(PromptMessage("good", task_id=turns[0].task_id))).task_id == turns[0].task_id


async def test_who_follows_a_task_that_is_deleted_is_told(tmp_path: Path) -> None:
    async with engine_on(tmp_path, AskingAgent()) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await all_of(turn)
        waiting = await engine.follow(turn.task_id, (await engine.get(turn.task_id)).seq)
        assert await Retention(engine.journal).delete([turn.task_id], also_waiting=True) == [turn.task_id]
        with pytest.raises(TaskNotFound, match="was deleted"):
            await all_of(waiting)


@pytest.mark.sqlite_file
@pytest.mark.parametrize("what", ["deleted", "replaced"])
async def test_nothing_is_kept_in_vain_when_the_journal_is_deleted_or_replaced(tmp_path: Path, what: str) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("hello"))
        await all_of(turn)
        (tmp_path / "journal.sqlite").unlink()
        if what == "replaced":
            (tmp_path / "journal.sqlite").touch()
        with pytest.raises(JournalError, match=f"journal.sqlite was {what} while it was open"):
            await engine.prompt(PromptMessage("again"))


@pytest.mark.sqlite_file
@pytest.mark.slow
async def test_asking_while_another_program_holds_the_journal_is_told_and_loses_nothing(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent, lease_seconds=2, busy_seconds=0.2) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        other = sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="another program holds the journal"):
            await engine.prompt(PromptMessage("again"))
        agent.release.set()
        with pytest.raises(JournalError, match="another program holds the journal"):
            await all_of(turn)
        other.execute("ROLLBACK")
        other.close()

        async def is_completed() -> bool:
            return (await engine.get(turn.task_id)).state is TaskState.COMPLETED

        await eventually_async(is_completed)
        assert len(await engine.tasks()) == 1
