import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest

from isthmus.client import Delivery, PromptMessage
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCall
from isthmus.journal.base import Finished, JournalError, Lease
from isthmus.journal.sqlite import SqliteJournal
from support.agents import EchoAgent, WaitingAgent
from support.engines import all_of, events
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class FullJournal(SqliteJournal):
    """Cannot end a segment while it is full."""

    is_full = False

    def finish(
        self, lease: Lease, events: Sequence[AgentEvent], pending: Sequence[ToolCall], *, discard_inbox: bool = False
    ) -> Awaitable[Finished]:
        if self.is_full:
            raise JournalError("the disk is full")
        return super().finish(lease, events, pending, discard_inbox=discard_inbox)

    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        if self.is_full:
            raise JournalError("the disk is full")
        return super().release(leases)


class ForgetfulJournal(SqliteJournal):
    """Has a session that cannot be understood."""

    async def session(self, context_id: str) -> Sequence[tuple[str, Delivery]]:
        raise KeyError(context_id)


async def test_who_follows_a_task_is_told_when_it_cannot_be_kept_and_it_goes_on_when_it_can(tmp_path: Path) -> None:
    agent = WaitingAgent()
    journal = FullJournal(tmp_path / "journal.sqlite")
    engine = Engine(agent, journal, EngineOptions(WorkspaceRule(tmp_path), lease_seconds=0.4))
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    following = [asyncio.create_task(all_of(item)) for item in (turn, await engine.follow(turn.task_id))]
    await agent.started.wait()
    journal.is_full = True
    agent.release.set()
    for follower in following:
        with pytest.raises(JournalError, match="the disk is full"):
            await follower
    with pytest.raises(JournalError, match="tried again later"):
        await all_of(await engine.follow(turn.task_id))
    journal.is_full = False

    async def is_completed() -> bool:
        return (await engine.get(turn.task_id)).state is TaskState.COMPLETED

    await eventually_async(is_completed)
    await engine.aclose()


async def test_a_session_that_cannot_be_read_fails_its_task_and_not_the_engine(tmp_path: Path) -> None:
    journal = ForgetfulJournal(tmp_path / "journal.sqlite")
    engine = Engine(EchoAgent(), journal, EngineOptions(WorkspaceRule(tmp_path)))
    await engine.start()
    (end,) = events(await all_of(await engine.prompt(PromptMessage("go", context_id="session"))))
    assert isinstance(end, StateChange)
    assert (end.state, end.reason) == (TaskState.FAILED, "internal_error")
    await engine.aclose()


async def test_an_engine_closes_also_when_nothing_can_be_kept(tmp_path: Path) -> None:
    journal = FullJournal(tmp_path / "journal.sqlite")
    engine = Engine(WaitingAgent(), journal, EngineOptions(WorkspaceRule(tmp_path)))
    await engine.start()
    turn = await engine.prompt(PromptMessage("work"))
    journal.is_full = True
    await engine.aclose()
    with pytest.raises(JournalError):
        await engine.get(turn.task_id)
