"""The stream of changed tasks: notices of the journal, other processes, resuming, users, limits and its end."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from isthmus.events import Prompt, StateChange, TaskState, TextContent
from isthmus.journal.port.base import JournalUnavailable
from isthmus.journal.port.task_rows import ClaimedTask, NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.web.sessions import changes
from isthmus.web.sessions.changes import ChangeFeed, TooManyStreamsError

pytestmark = pytest.mark.anyio
WAIT = 10.0


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    opened = await SqliteJournal.open(tmp_path / "journal.db")
    yield opened
    await opened.aclose()


async def begin(journal: SqliteJournal, task_id: str, user: str = "") -> ClaimedTask:
    task = NewTask(task_id, f"context-{task_id}", "/work", "a task", user)
    return await journal.create(task, [Prompt("m", "do it", None)], "here", 60)


async def line(frames: AsyncGenerator[bytes]) -> dict[str, Any]:
    """Return the next line that is not a comment."""
    async with asyncio.timeout(WAIT):
        while True:
            frame = (await anext(frames)).decode()
            if "data: " in frame:
                return json.loads(frame.partition("data: ")[2])


async def test_each_change_of_state_is_told_and_no_text(journal: SqliteJournal) -> None:
    feed = ChangeFeed(journal, look_seconds=1000)
    async with aclosing(feed.frames("", None)) as frames:
        assert (await anext(frames)).startswith(b":")
        following = asyncio.ensure_future(line(frames))
        claimed = await begin(journal, "one")
        assert (await following)["state"] == "submitted"
        await journal.append(claimed.lease, [StateChange(TaskState.WORKING)])
        assert (await line(frames))["state"] == "working"
        await journal.append(claimed.lease, [TextContent("t", "text")])
        await journal.finish(claimed.lease, [StateChange(TaskState.COMPLETED)], [])
        told = await line(frames)
        assert (told["id"], told["state"], told["questions"]) == ("one", "completed", 0)


async def test_a_new_name_and_the_archive_are_told_at_once_and_by_other_processes(
    journal: SqliteJournal, tmp_path: Path
) -> None:
    claimed = await begin(journal, "one")
    feed = ChangeFeed(journal, look_seconds=0.02)
    other = await SqliteJournal.open(tmp_path / "journal.db")
    try:
        async with aclosing(feed.frames("", None)) as frames, aclosing(feed.frames("alice", None)) as hers:
            await anext(frames)
            await anext(hers)
            for writer in (journal, other):
                assert await writer.sessions.rename("context-one", "", f"by {writer}")
                while "session" not in (told := await line(frames)):
                    assert told["id"] == "one"
                assert told["session"] == "context-one"
            following = asyncio.ensure_future(line(hers))
            await begin(journal, "hers", "alice")
            assert (await following)["contextId"] == "context-hers"
        async with aclosing(feed.frames("", claimed.row.updated_at)) as frames:
            assert [next(iter(await line(frames))) for _ in range(2)] == ["id", "session"]
    finally:
        await other.aclose()


async def test_without_a_page_the_journal_tells_nobody(journal: SqliteJournal) -> None:
    feed = ChangeFeed(journal)
    async with aclosing(feed.frames("", None)) as frames:
        await anext(frames)
        assert journal.changes.is_watched
    assert not journal.changes.is_watched
    await begin(journal, "one")


async def test_a_change_by_another_process_is_found(journal: SqliteJournal, tmp_path: Path) -> None:
    feed = ChangeFeed(journal, look_seconds=0.02)
    other = await SqliteJournal.open(tmp_path / "journal.db")
    try:
        async with aclosing(feed.frames("", None)) as frames:
            await anext(frames)
            following = asyncio.ensure_future(line(frames))
            claimed = await begin(other, "far")
            assert (await following)["id"] == "far"
            await other.finish(claimed.lease, [StateChange(TaskState.COMPLETED)], [])
            assert (await line(frames))["state"] == "completed"
    finally:
        await other.aclose()


async def test_nothing_of_another_user_is_told(journal: SqliteJournal) -> None:
    feed = ChangeFeed(journal, look_seconds=0.02)
    async with aclosing(feed.frames("alice", None)) as hers, aclosing(feed.frames("", None)) as own:
        following = asyncio.ensure_future(line(hers)), asyncio.ensure_future(line(own))
        await asyncio.sleep(0)
        await begin(journal, "of-bob", "bob")
        await begin(journal, "of-alice", "alice")
        await begin(journal, "of-owner")
        assert [(await found)["id"] for found in following] == ["of-alice", "of-owner"]


async def test_a_stream_goes_on_after_the_last_line(journal: SqliteJournal) -> None:
    claimed = await begin(journal, "one")
    await begin(journal, "two")
    feed = ChangeFeed(journal, look_seconds=1000)
    async with aclosing(feed.frames("", claimed.row.updated_at)) as frames:
        assert [(await line(frames))["id"] for _ in range(2)] == ["one", "two"]


async def test_more_changes_than_are_listed_say_list_again(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAXIMUM_LISTED", 2)
    for number in range(3):
        await begin(journal, f"task-{number}")
    feed = ChangeFeed(journal, look_seconds=1000)
    async with aclosing(feed.frames("", 0)) as frames:
        assert await line(frames) == {"all": True}
        assert [(await line(frames))["id"] for _ in range(2)] == ["task-1", "task-2"]
        async with aclosing(feed.frames("", None)) as quick:
            await anext(quick)
            for number in range(3):
                following = asyncio.ensure_future(line(quick))
                await begin(journal, f"later-{number}")
                assert (await following)["id"] == f"later-{number}"
        assert await line(frames) == {"all": True}


async def test_the_number_of_streams_of_a_user_is_limited(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAXIMUM_STREAMS", 1)
    feed = ChangeFeed(journal)
    async with aclosing(feed.frames("alice", None)) as frames:
        await anext(frames)
        with pytest.raises(TooManyStreamsError, match="maximum"):
            await feed.check("alice")
        await feed.check("bob")
    await feed.check("alice")


async def test_streams_end_when_the_journal_is_away_and_none_begins(
    journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = ChangeFeed(journal, look_seconds=0.01)

    async def away() -> int:
        raise JournalUnavailable("the database is away")

    async with aclosing(feed.frames("alice", None)) as first, aclosing(feed.frames("bob", None)) as second:
        await anext(first)
        await anext(second)
        monkeypatch.setattr(journal, "version", away)
        async with asyncio.timeout(10):
            assert [frame async for frame in first] == [frame async for frame in second] == []
    with pytest.raises(JournalUnavailable):
        await feed.check("alice")
    monkeypatch.undo()
    await feed.check("alice")
