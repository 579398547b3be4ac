"""Notices of changed tasks: sent after the commit, and not for events that leave the state as it is."""

import asyncio

import pytest

from isthmus.events import AgentEvent, StateChange, TaskState, TextContent
from isthmus.journal.port.base import JournalError
from isthmus.journal.port.task_changes import TaskChanges

pytestmark = pytest.mark.anyio
TEXT, CHANGE = TextContent("m", "Hello"), StateChange(TaskState.WORKING)


async def settled(written: "asyncio.Future[None]", error: BaseException | None = None) -> None:
    """End a write, and let its callbacks run."""
    if isinstance(error, asyncio.CancelledError):
        written.cancel()
    elif error is not None:
        written.set_exception(error)
        written.exception()  # somebody has looked at it
    else:
        written.set_result(None)
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("events", "is_told"), [(None, True), ([TEXT], False), ([], False), ([TEXT, CHANGE, TEXT], True), ([CHANGE], True)]
)
async def test_watchers_are_told_of_a_write_unless_it_only_adds_other_events(
    events: list[AgentEvent] | None, is_told: bool
) -> None:
    changes, told, written = TaskChanges(), list[str](), asyncio.Future[None]()
    changes.watch(told.append)
    changes.follow("t1", written, events)
    assert told == []  # nothing is committed yet
    await settled(written)
    assert told == (["t1"] if is_told else [])


@pytest.mark.parametrize("error", [JournalError("no disk"), asyncio.CancelledError()], ids=["failed", "cancelled"])
async def test_nobody_is_told_of_a_write_that_did_not_happen(error: BaseException) -> None:
    changes, told, written = TaskChanges(), list[str](), asyncio.Future[None]()
    changes.watch(told.append)
    changes.follow("t1", written)
    await settled(written, error)
    assert told == []


async def test_each_watcher_is_told_until_it_ends() -> None:
    changes, first, second = TaskChanges(), list[str](), list[str]()
    end = changes.watch(first.append)
    changes.watch(second.append)
    for task_id in ("t1", "t2"):
        written = asyncio.Future[None]()
        changes.follow(task_id, written)
        await settled(written)
        end()
    assert (first, second) == (["t1"], ["t1", "t2"])
    assert changes.is_watched


async def test_a_write_before_the_first_watcher_costs_no_callback() -> None:
    changes, told, written = TaskChanges(), list[str](), asyncio.Future[None]()
    assert not changes.is_watched
    changes.follow("t1", written)
    changes.watch(told.append)
    await settled(written)
    assert told == []
