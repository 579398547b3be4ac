"""Copies of journals between files and databases: everything is there, or nothing; what is in use is refused."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.client import NO_LIMITS
from isthmus.events import Prompt, StateChange, TaskState, TextContent
from isthmus.journal.opening import open_journal, snapshot_of
from isthmus.journal.place import JournalPlace
from isthmus.journal.port.base import Journal, JournalError
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.replicas import Member
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.postgres import schema as postgres_schema
from isthmus.journal.postgres import snapshot as postgres_snapshot
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sql.tables import EVENTS, TABLES
from isthmus.journal.sqlite import copying as sqlite_copying
from isthmus.journal.sqlite import snapshot as sqlite_snapshot
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.journal.upkeep.copying import copy_journal
from isthmus.journal.upkeep.migrating import migrate, versions_of
from isthmus.journal.upkeep.status import status_of
from support.journal_steps import Side, run_steps, steps
from support.postgres import run_sql
from support.whole_journals import content, copied, fill, problems_of

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

VERSION_1 = Path(__file__).parent / "journals" / "version_1.sqlite"
KILLED = """
import asyncio, os, signal, sys
from isthmus.journal.upkeep.copying import copy_journal
from isthmus.journal.place import place_of
asyncio.run(copy_journal(place_of(sys.argv[1]), place_of(sys.argv[2]), lambda *_: os.kill(os.getpid(), signal.SIGKILL)))
"""
HOLDER = """
import asyncio, sys
from pathlib import Path
from isthmus.journal.sqlite.journal import SqliteJournal
async def main():
    await SqliteJournal.open(Path(sys.argv[1]))
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""

END_OTHERS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def open_place(place: JournalPlace, agent: str = "") -> Journal:
    return await open_journal(place.file, place.url, (agent,) if agent else ())


@pytest.fixture
def file(tmp_path: Path) -> JournalPlace:
    return JournalPlace(tmp_path / "data" / "journal.sqlite")


@pytest.fixture
def database(postgres_server: "Postgres") -> JournalPlace:
    return JournalPlace(Path(), postgres_server.database())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a journal's file with everything in it."""

    async def make(path: Path) -> None:
        journal = await open_place(JournalPlace(path), "Isthmus")
        await fill(journal)
        await journal.aclose()

    path = tmp_path_factory.mktemp("filled") / "journal.sqlite"
    asyncio.run(make(path))
    return path


@pytest.fixture
def whole(filled: Path, file: JournalPlace) -> JournalPlace:
    """Return the place of a closed journal with everything in it."""
    file.file.parent.mkdir()
    shutil.copy(filled, file.file)
    return file


async def test_a_journal_is_the_same_after_copies_to_each_kind(
    whole: JournalPlace, database: JournalPlace, tmp_path: Path, postgres_server: "Postgres"
) -> None:
    before = await content(whole)
    assert all(before[table.name] for table in TABLES)
    backup = await copied(whole, JournalPlace(tmp_path / "backup.sqlite"))
    first = await copied(backup, database)
    second = await copied(first, JournalPlace(Path(), postgres_server.database()))
    third = await copied(second, JournalPlace(tmp_path / "third" / "journal.sqlite"))
    for place in (backup, first, second, third):
        assert await content(place) == before, place.name
        assert await problems_of(place) == []
    assert third.file.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in third.file.parent.iterdir()] == ["journal.sqlite"]


async def test_a_copy_is_used_like_the_journal_and_nobody_holds_its_tasks(
    whole: JournalPlace, database: JournalPlace, tmp_path: Path
) -> None:
    await copied(whole, database)
    last = await copied(database, JournalPlace(tmp_path / "last.sqlite"))
    for place in (database, last):
        journal = await open_place(place, "Isthmus")
        try:
            works = await journal.task("works")
            assert works is not None
            assert (works.owner, works.lease_until, works.epoch) == (None, 0.0, 1)
            taken = await journal.take_over(works, "another", 60)
            assert taken is not None
            assert len(await journal.inbox("works")) == 4
            await journal.post(taken.row, [Prompt("after", "And that")])
            assert len(await journal.take(taken.lease, [Prompt("after", "And that")], 5)) == 1
            await journal.create(NewTask("new", "c9", "/work", "New"), [Prompt("m-new", "New")], "another", 60)
            assert await journal.queue.length() == 2
        finally:
            await journal.aclose()
        assert await problems_of(place) == []


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=st.lists(st.lists(steps, min_size=1, max_size=4), min_size=4, max_size=14))
async def test_any_journal_reads_the_same_after_a_copy_there_and_back(
    tmp_path_factory: pytest.TempPathFactory, database: JournalPlace, groups: list[list[tuple[Any, ...]]]
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    source = JournalPlace(folder / "journal.sqlite")
    journal = await open_place(source)
    side = Side(journal, "e")
    await asyncio.gather(*(side.journal.task(f"e-{number}") for number in range(4)))
    for group in groups:
        await run_steps(side, [plausible(step) for step in group])
    await journal.aclose()
    before = await content(source)
    await clear(database)
    await copied(source, database)
    back = await copied(database, JournalPlace(folder / "back.sqlite"))
    assert await content(database) == await content(back) == before
    assert await problems_of(database) == await problems_of(back) == []


def plausible(step: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a step whose events are such as engines write: tasks begin and go on with a prompt."""
    match step:
        case ("create" | "claim" | "queue" | "resume" as kind, number, owner, events, is_limited):
            rest = [event for event in events if not isinstance(event, StateChange)]
            return (kind, number, owner, [Prompt("p0", "Do it"), *rest], is_limited)
        case _:
            return step


async def clear(place: JournalPlace) -> None:
    """Empty the tables of a database, if it has any."""
    if await run_sql(place.url, "SELECT to_regclass('tasks') IS NOT NULL"):
        await run_sql(place.url, f"TRUNCATE {', '.join(table.name for table in TABLES)} RESTART IDENTITY")


async def test_a_file_is_backed_up_while_a_process_writes_to_it(file: JournalPlace, tmp_path: Path) -> None:
    journal = await open_place(file)
    taken = await journal.create(NewTask("t", "c", "/work", "Fix"), [Prompt("m", "Fix")], new_owner(), 60)
    stop = asyncio.Event()
    backups = [JournalPlace(tmp_path / f"backup-{number}.sqlite") for number in range(2)]

    async def write() -> int:
        count = 0
        while not stop.is_set():
            await journal.append(taken.lease, [TextContent("t", "word " * 2000)])
            count += 1
        return count

    writing = asyncio.create_task(write())
    try:
        for backup in backups:
            await copied(file, backup)
            assert await problems_of(backup) == []
    finally:
        stop.set()
        assert await writing > 3
        await journal.aclose()
    assert len((await content(file))["events"]) > len((await content(backups[1]))["events"]) > 1
    opened = await open_place(backups[1])
    row = await opened.task("t")
    await opened.aclose()
    assert row is not None
    assert row.owner is None


async def test_an_older_file_is_backed_up_as_it_is_but_not_moved(database: JournalPlace, tmp_path: Path) -> None:
    old = tmp_path / "old.sqlite"
    old.write_bytes(VERSION_1.read_bytes())
    with pytest.raises(JournalError, match="isthmus journal migrate"):
        await copy_journal(JournalPlace(old), database)
    backup = await copied(JournalPlace(old), JournalPlace(tmp_path / "backup.sqlite"))
    assert (await status_of(backup)).version == 1
    with pytest.raises(JournalError, match=r"has journal version 1, and .* 12.*isthmus journal migrate"):
        await problems_of(backup)
    await (await open_place(backup)).aclose()
    assert await problems_of(backup) == []


async def test_a_file_in_use_is_not_moved_and_its_process_is_named(whole: JournalPlace, database: JournalPlace) -> None:
    command = [sys.executable, "-c", HOLDER, str(whole.file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        named = f"process {holder.pid}" if sys.platform == "linux" else "another process"
        with pytest.raises(JournalError, match=rf"is in use: {named} works with it"):
            await copy_journal(whole, database)
        assert holder.pid in [process.pid for process in (await status_of(whole)).processes]
        holder.communicate("")
    await copied(whole, database)


async def test_no_process_opens_a_file_while_it_is_moved(whole: JournalPlace) -> None:
    async with snapshot_of(whole, alone=True):
        with pytest.raises(JournalError, match="locked"):
            await SqliteJournal.open(whole.file, busy_seconds=0.05)


async def test_a_database_in_use_is_not_copied_and_its_process_is_named(database: JournalPlace, tmp_path: Path) -> None:
    journal = await PostgresJournal.open(database.url)
    target = JournalPlace(tmp_path / "copy.sqlite")
    await journal.replicas.join(Member(new_owner(), ("gpu", "big"), 4), lambda _: None)
    try:
        with pytest.raises(JournalError, match=rf"is in use: process {os.getpid()} on "):
            await copy_journal(database, target)
        (process,) = (await status_of(database)).processes
        assert (process.pid, process.labels, process.slots, process.is_alive) == (os.getpid(), ("gpu", "big"), 4, True)
    finally:
        await journal.aclose()
    assert not target.file.exists()
    await copied(database, target)


async def test_a_database_whose_tasks_are_leased_is_not_copied(database: JournalPlace, tmp_path: Path) -> None:
    journal = await PostgresJournal.open(database.url)
    task = NewTask("t", "c", "/work", "Fix")
    taken = await journal.create(task, [Prompt("m", "Fix")], "x:elsewhere/1/2:77:1", 60, NO_LIMITS)
    with pytest.raises(JournalError, match="process 77 on elsewhere works with it"):
        await copy_journal(database, JournalPlace(tmp_path / "copy.sqlite"))
    await journal.release([taken.lease])
    await copied(database, JournalPlace(tmp_path / "copy.sqlite"))
    await journal.aclose()


async def test_a_place_that_is_taken_is_left_alone(whole: JournalPlace, database: JournalPlace, tmp_path: Path) -> None:
    taken = tmp_path / "taken.sqlite"
    taken.write_text("my notes", encoding="utf-8")
    with pytest.raises(JournalError, match="exists already"):
        await copy_journal(whole, JournalPlace(taken))
    assert taken.read_text(encoding="utf-8") == "my notes"
    taken.rename(tmp_path / "left.sqlite-wal")
    with pytest.raises(JournalError, match=r"left\.sqlite-wal exists already"):
        await copy_journal(whole, JournalPlace(tmp_path / "left.sqlite"))
    await copied(whole, database)
    with pytest.raises(JournalError, match="not empty"):
        await copy_journal(whole, database)
    with pytest.raises(JournalError, match="not empty"):
        await copy_journal(database, database)
    assert await problems_of(database) == []


async def test_a_copy_into_a_file_that_is_killed_leaves_no_journal_and_is_made_again(
    whole: JournalPlace, database: JournalPlace, tmp_path: Path
) -> None:
    await copied(whole, database)
    target = JournalPlace(tmp_path / "copy.sqlite")
    kill_copy(database.url, str(target.file))
    assert (tmp_path / "copy.sqlite.incomplete").exists()
    assert not target.file.exists()
    with pytest.raises(JournalError, match="copy that was interrupted"):
        await SqliteJournal.open(tmp_path / "copy.sqlite.incomplete")
    await copied(database, target)
    assert await problems_of(target) == []
    assert [file.name for file in tmp_path.glob("copy.sqlite*")] == ["copy.sqlite"]


async def test_a_copy_into_a_database_that_is_killed_leaves_it_empty_and_is_made_again(
    whole: JournalPlace, database: JournalPlace
) -> None:
    kill_copy(str(whole.file), database.url)
    assert await run_sql(database.url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    await copied(whole, database)
    assert await problems_of(database) == []


def kill_copy(source: str, target: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, source, target], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL


async def test_a_copy_that_is_cancelled_leaves_nothing(
    whole: JournalPlace, database: JournalPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_copying, "BACKUP_PAGES", 1)
    target = JournalPlace(tmp_path / "copy.sqlite")
    loop = asyncio.get_running_loop()

    async def cancel(source: JournalPlace, target: JournalPlace) -> None:
        def stop(done: int, total: int) -> None:
            del done, total
            loop.call_soon_threadsafe(copying.cancel)

        copying = asyncio.create_task(copy_journal(source, target, stop))
        with pytest.raises(asyncio.CancelledError):
            await copying

    await cancel(whole, target)
    await cancel(whole, database)
    assert await run_sql(database.url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    await copied(whole, database)
    await cancel(database, target)
    assert not list(tmp_path.glob("copy.sqlite*"))


async def test_a_copy_whose_database_is_lost_says_so_and_leaves_nothing(
    whole: JournalPlace, database: JournalPlace, postgres_server: "Postgres", tmp_path: Path
) -> None:
    def lose(done: int, total: int) -> None:
        del done, total
        postgres_server.sql(END_OTHERS, database.url.rpartition("/")[2])

    with pytest.raises(JournalError, match=r"cannot be opened \(.*Check that the database runs"):
        await copy_journal(whole, database, lose)
    await copied(whole, database)
    with pytest.raises(JournalError, match=r"cannot be opened \(.*Check that the database runs"):
        await copy_journal(database, JournalPlace(tmp_path / "copy.sqlite"), lose)
    assert not list(tmp_path.glob("copy.sqlite*"))


async def test_texts_that_a_database_cannot_hold_are_replaced_and_counted(
    file: JournalPlace, database: JournalPlace
) -> None:
    journal = await open_place(file)
    task = NewTask("t", "c\0", "/work", "A\0title", "", "m\0")
    taken = await journal.create(task, [Prompt("m\0", "a \0 stays")], "owner", 60)
    await journal.finish(taken.lease, [StateChange(TaskState.FAILED, "bad\0", "x")], [])
    await journal.aclose()
    assert (await copy_journal(file, database)).replaced == 5
    assert await problems_of(file) == await problems_of(database) == []
    assert (await content(file))["events"] == (await content(database))["events"]


async def test_rows_are_read_in_batches_that_fit_the_memory(
    file: JournalPlace, database: JournalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_snapshot, postgres_snapshot):
        monkeypatch.setattr(module, "BATCH_CHARACTERS", 30_000)
        monkeypatch.setattr(module, "BATCH_ROWS", 100)
    journal = await open_place(file)
    taken = await journal.create(NewTask("t", "c", "/work", "Fix"), [Prompt("m", "Fix")], "owner", 60)
    await journal.append(taken.lease, [TextContent("t", "x" * 10_000) for _ in range(20)])
    await journal.append(taken.lease, [TextContent("t", "small") for _ in range(250)])
    await journal.append(taken.lease, [TextContent("t", "x" * 50_000)])
    await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.aclose()
    await copied(file, database)
    for place in (file, database):
        async with snapshot_of(place) as snapshot:
            batches = [rows async for rows in snapshot.rows(EVENTS)]
        assert [row[1] for rows in batches for row in rows] == list(range(1, 274))
        assert max(len(rows) for rows in batches) == 100
        assert max(sum(len(row[4]) for row in rows) for rows in batches) < 85_000


async def test_an_older_database_is_upgraded_when_it_is_told_to_be(
    database: JournalPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(postgres_schema, "VERSION", 1)
        await (await open_place(database, "Isthmus")).aclose()
    status = await status_of(database)
    assert (status.version, status.newest, status.queued, status.processes) == (1, 7, None, [])
    assert await versions_of(database) == (1, 7)
    with pytest.raises(JournalError, match="isthmus journal migrate"):
        await problems_of(database)
    assert (await status_of(database)).version == 1
    assert await migrate(database) == (1, 7)
    assert await migrate(database) == (7, 7)
    assert await problems_of(database) == []


async def test_a_newer_database_and_one_without_a_journal_are_left_alone(
    whole: JournalPlace, database: JournalPlace, tmp_path: Path
) -> None:
    for work in (status_of, migrate, problems_of):
        with pytest.raises(JournalError, match="there is no journal in"):
            await work(database)
    await copied(whole, database)
    await run_sql(database.url, "UPDATE journal SET version = 99")
    for work in (status_of, migrate, problems_of):
        with pytest.raises(JournalError, match=r"newer Isthmus \(journal version 99, this one knows 7\)"):
            await work(database)
    with pytest.raises(JournalError, match="newer Isthmus"):
        await copy_journal(whole, database)


@pytest.fixture
async def served(whole: JournalPlace, database: JournalPlace) -> AsyncIterator[JournalPlace]:
    """Return a database with which a server works."""
    await copied(whole, database)
    journal = await open_place(database, "Isthmus")
    yield database
    await journal.aclose()


async def test_a_dump_of_a_database_in_use_is_restored_whole(served: JournalPlace, postgres_server: "Postgres") -> None:
    restored = JournalPlace(Path(), postgres_server.database())
    postgres_server.client("pg_dump", "-Fc", "-f", "backup.dump", "-d", served.url)
    postgres_server.client("pg_restore", "--exit-on-error", "-d", restored.url, "backup.dump")
    assert await content(restored) == await content(served)
    assert await problems_of(restored) == []
    journal = await open_place(restored, "Isthmus")
    await journal.create(NewTask("new", "c9", "/work", "New"), [Prompt("m-new", "New")], "another", 60)
    await journal.aclose()
    assert await problems_of(restored) == []
