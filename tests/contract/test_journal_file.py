"""The embedded journal in its file: who may read it, what is refused, upgrades, and the cost of its queries."""

import contextlib
import errno
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import (
    ToolCallConfirmation,
)
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    event_from_json,
)
from isthmus.journal.port.base import INBOX_MESSAGES, Journal, JournalError, StaleLease
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sql import reads as sql_reads
from isthmus.journal.sql import rows
from isthmus.journal.sqlite import inbox as sqlite_inbox
from isthmus.journal.sqlite.connections import explain
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journal_tasks import new_task, row_of, texts

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "journal.sqlite"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[Journal]:
    opened = await SqliteJournal.open(path)
    yield opened
    await opened.aclose()


async def test_what_was_kept_is_there_after_kill_9_and_large_numbers_stay_whole(path: Path) -> None:
    program = f"""
import asyncio, os, signal
from pathlib import Path
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.events import Prompt, TextContent
async def main():
    journal = await SqliteJournal.open(Path({str(path)!r}))
    taken = await journal.create(NewTask("t1", "c1", "/w", "x"), [Prompt("m", "x", {{"n": 9007199254740993}})], "o", 20)
    await journal.append(taken.lease, [TextContent("m", "kept")], full_sync=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], timeout=30, check=False)
    assert ended.returncode == -9
    journal = await SqliteJournal.open(path)
    kept = await journal.events("t1", 0, 10)
    await journal.aclose()
    assert [item.event for item in kept] == [Prompt("m", "x", {"n": 9007199254740993}), TextContent("m", "kept")]


async def test_the_file_is_for_its_owner_alone(journal: Journal, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_file_that_others_could_read_is_closed_to_them_when_it_is_opened(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = await SqliteJournal.open(path)
    await first.create(NewTask("t", "c", "/w", "t"), [Prompt("m", "x")], "me", 30)
    files = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    for file in files:
        file.chmod(0o644)
    second = await SqliteJournal.open(path)
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3
    assert "0644" in caplog.text
    await second.aclose()
    await first.aclose()


async def test_a_file_that_is_no_database_is_named_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"my shopping list, rather long so that it is not a header" * 50)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"journal\.sqlite is not a readable journal"):
        await SqliteJournal.open(path)
    assert path.read_bytes() == before


async def test_the_database_of_another_program_is_named_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cakes (name)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="another program"):
        await SqliteJournal.open(path)
    assert path.read_bytes() == before


async def test_a_journal_of_a_newer_version_is_named_and_left_alone(path: Path) -> None:
    await (await SqliteJournal.open(path)).aclose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"newer Isthmus \(journal version 99, this one knows 12\)"):
        await SqliteJournal.open(path)
    assert path.read_bytes() == before


async def test_a_journal_that_another_program_locks_is_named(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(JournalError, match="locked by another program"):
            await SqliteJournal.open(path, busy_seconds=0.05)
    finally:
        connection.close()


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder", encoding="utf-8")
    with pytest.raises(JournalError, match="cannot be opened"):
        await SqliteJournal.open(blocker / "journal.sqlite")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (sqlite3.OperationalError("database or disk is full"), "its disk, or your quota, is full. Free some space"),
        (OSError(errno.ENOSPC, "No space left on device"), "its disk, or your quota, is full. Free some space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "its disk, or your quota, is full. Free some space"),
        (sqlite3.OperationalError("disk I/O error"), "the size of files is limited too much"),
        (PermissionError(errno.EACCES, "Permission denied"), "Check that the folder exists and is yours"),
    ],
)
def test_why_a_file_cannot_be_opened_is_said_by_its_cause(tmp_path: Path, error: Exception, reason: str) -> None:
    assert reason in explain(tmp_path / "journal.sqlite", error)


async def test_two_processes_may_share_the_file(journal: Journal, path: Path) -> None:
    other = await SqliteJournal.open(path)
    try:
        lease = (await new_task(journal)).lease
        await journal.append(lease, texts("seen by both"))
        assert [item.event for item in await other.events("t1", 1, 10)] == list(texts("seen by both"))
    finally:
        await other.aclose()


async def test_nothing_is_written_after_the_journal_is_closed(path: Path) -> None:
    journal = await SqliteJournal.open(path)
    await journal.aclose()
    with pytest.raises(JournalError, match="closed"):
        await new_task(journal)


async def test_what_a_message_left_is_found_at_the_same_cost_however_long_the_task_is(
    journal: Journal, path: Path
) -> None:
    taken = await new_task(journal)

    async def grow(count: int) -> None:
        texts = [TextContent("t", "word ") for _ in range(20)]
        for number in range(count):
            await journal.append(taken.lease, [Prompt(f"p{count}-{number}", "Go on"), *texts])

    def cost() -> int:
        """Return the number of steps that SQLite takes to find the last message."""
        steps: list[None] = []
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.set_progress_handler(lambda: steps.append(None), 1)
            assert len(connection.execute(rows.BY_MESSAGE, ("t1", 0, "last")).fetchall()) == 1
        return len(steps)

    await journal.append(taken.lease, [Prompt("last", "Find me")])
    short = cost()
    await grow(100)
    assert cost() <= short * 2
    (found,) = await journal.of_message("t1", "last")
    assert found.event == Prompt("last", "Find me")
    await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], ())
    await journal.removal.mark(["t1"])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (0,)


async def test_looking_for_answers_and_cancellations_costs_the_same_however_much_waits(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = await new_task(journal)
    row = await row_of(journal)
    first, other = (
        ConfirmationAccepted(ToolCallConfirmation(call, "proceed_once"), f"a{call}") for call in ("call-1", "call-2")
    )
    read: list[str] = []

    def counted(values: Any) -> AgentEvent:
        read.append(str(values))
        return event_from_json(values)

    def cost(statement: str, *values: Any) -> int:
        """Return the number of steps that SQLite takes for a statement."""
        steps: list[None] = []
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.set_progress_handler(lambda: steps.append(None), 1)
            connection.execute(statement, values).fetchall()
        return len(steps)

    def costs() -> list[int]:
        return [cost(rows.ANSWERS, "t1", row.seq, "t1"), cost(rows.CANCELLATION, "t1", 1)]

    await journal.post(row, [first])
    short = costs()
    for number in range(INBOX_MESSAGES - 1):
        await journal.post(row, [Prompt(f"w{number}", '"type":"StateChange"')])
    assert all(long <= before * 2 for long, before in zip(costs(), short, strict=True))
    monkeypatch.setattr(sqlite_inbox, "event_from_json", counted)
    monkeypatch.setattr(sql_reads, "event_from_json", counted)
    await journal.post(row, [other])
    with pytest.raises(StaleLease, match="has been answered"):
        await journal.post(row, [first])
    assert len(read) == 3  # The waiting answers, each time.
    assert await journal.waiting("t1", ConfirmationAccepted) == [first, other]
    assert len(read) == 5
    assert list(await journal.cancelled([taken.lease])) == []
    await journal.post(row, [StateChange(TaskState.CANCELED)])
    assert list(await journal.cancelled([taken.lease])) == ["t1"]
    assert len(read) == 5
    assert await journal.waiting("t1", StateChange) == [StateChange(TaskState.CANCELED)]
    assert len(read) == 6


async def test_what_waited_before_an_upgrade_is_found_by_its_type(journal: Journal, path: Path) -> None:
    taken = await new_task(journal)
    await journal.post(await row_of(journal), [StateChange(TaskState.CANCELED)])
    await journal.aclose()
    with contextlib.closing(sqlite3.connect(path)) as connection:  # As version 4 had it.
        connection.executescript(
            "DROP INDEX IF EXISTS inbox_by_type; CREATE TABLE was (number INTEGER PRIMARY KEY, task INTEGER NOT NULL,"
            " body TEXT NOT NULL); INSERT INTO was SELECT number, task, body FROM inbox; DROP TABLE inbox;"
            " ALTER TABLE was RENAME TO inbox; DROP INDEX tasks_by_parent; DROP INDEX tasks_at_work;"
            " ALTER TABLE tasks DROP COLUMN running_limit; ALTER TABLE tasks DROP COLUMN parent;"
            " DROP TABLE chats; DROP TABLE sessions; DROP TABLE queued; DROP TABLE removed_tokens;"
            " DROP INDEX tasks_in_queue;"
            " DROP INDEX tasks_in_queue_by_user; DROP TABLE queue;"
            " ALTER TABLE tasks DROP COLUMN label; ALTER TABLE tasks DROP COLUMN tag;"
            " ALTER TABLE tasks DROP COLUMN reserved; PRAGMA user_version=4"
        )
    opened = await SqliteJournal.open(path)
    try:
        assert list(await opened.cancelled([taken.lease])) == ["t1"]
    finally:
        await opened.aclose()
