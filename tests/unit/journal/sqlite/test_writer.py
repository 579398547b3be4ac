import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from isthmus.journal.port.base import JournalError
from isthmus.journal.sqlite.writer import LOG_PAGES, GroupWriter

pytestmark = pytest.mark.anyio


@pytest.fixture
def statements() -> list[str]:
    return []


@pytest.fixture
def connection(tmp_path: Path, statements: list[str]) -> sqlite3.Connection:
    opened = sqlite3.connect(tmp_path / "file", isolation_level=None, check_same_thread=False)
    opened.execute("CREATE TABLE numbers (number)")
    opened.set_trace_callback(statements.append)
    return opened


async def test_the_writes_of_one_turn_of_the_loop_are_one_commit_in_their_order(
    connection: sqlite3.Connection, statements: list[str]
) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())
    writes = [
        writer.submit(lambda connection, n=n: connection.execute("INSERT INTO numbers VALUES (?)", (n,)).lastrowid)
        for n in range(20)
    ]
    assert await asyncio.gather(*writes) == list(range(1, 21))
    await writer.aclose()
    assert statements.count("COMMIT") == 1


async def test_what_was_submitted_before_the_end_is_kept(tmp_path: Path, connection: sqlite3.Connection) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())
    future = writer.submit(lambda connection: connection.execute("INSERT INTO numbers VALUES (7)").rowcount)
    await writer.aclose()
    assert await future == 1
    reopened = sqlite3.connect(tmp_path / "file")
    assert reopened.execute("SELECT number FROM numbers").fetchall() == [(7,)]
    reopened.close()


async def test_what_builds_on_a_write_that_was_lost_is_lost_too(connection: sqlite3.Connection) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())

    begun, go_on = threading.Event(), threading.Event()

    def refuse(connection: sqlite3.Connection) -> None:
        begun.set()
        assert go_on.wait(10)
        raise sqlite3.OperationalError("database or disk is full")

    def insert(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO numbers VALUES (7)").rowcount

    lost = writer.submit(refuse, series="a")
    assert await asyncio.to_thread(begun.wait, 10)
    writes = [writer.submit(insert, series=series) for series in ("a", "b", None)]
    go_on.set()
    with pytest.raises(JournalError, match="is full"):
        await lost
    with pytest.raises(JournalError, match="an earlier write"):
        await writes[0]
    assert await asyncio.gather(*writes[1:]) == [1, 1]
    await writer.aclose()


async def test_a_write_that_cannot_be_done_takes_none_of_its_group_with_it(connection: sqlite3.Connection) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())

    def insert(connection: sqlite3.Connection) -> int:
        return connection.execute("INSERT INTO numbers VALUES (7)").rowcount

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (8)")
        connection.execute("INSERT INTO numbers VALUES (?)", (object(),))

    before, lost, after = writer.submit(insert, series="a"), writer.submit(fail, series="b"), writer.submit(insert)
    assert await before == 1
    with pytest.raises(JournalError, match="this step was not stored"):
        await lost
    assert await after == 1
    assert await writer.submit(lambda c: c.execute("SELECT number FROM numbers").fetchall()) == [(7,), (7,)]
    await writer.aclose()


def thread_of(connection: sqlite3.Connection) -> int:
    """Write a number, and return the thread that does."""
    connection.execute("INSERT INTO numbers VALUES (7)")
    return threading.get_ident()


async def test_brief_writes_are_committed_on_the_loop_in_their_order(
    connection: sqlite3.Connection, statements: list[str]
) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())
    writes = [writer.submit(thread_of, is_brief=True) for _ in range(3)]
    assert await asyncio.gather(*writes) == [threading.get_ident()] * 3
    assert statements.count("COMMIT") == 1
    await writer.aclose()


@pytest.mark.parametrize("options", [{"is_brief": True, "full_sync": True}, {"is_brief": False}])
async def test_what_takes_time_is_committed_on_the_thread(
    connection: sqlite3.Connection, options: dict[str, bool]
) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())
    assert await writer.submit(thread_of, **options) != threading.get_ident()
    await writer.aclose()


async def test_a_brief_write_comes_after_those_that_are_under_way(connection: sqlite3.Connection) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())
    begun, go_on = threading.Event(), threading.Event()

    def insert(connection: sqlite3.Connection) -> int | None:
        begun.set()
        assert go_on.wait(10)
        return connection.execute("INSERT INTO numbers VALUES (1)").lastrowid

    first = writer.submit(insert)
    assert await asyncio.to_thread(begun.wait, 10)
    second = writer.submit(lambda c: c.execute("INSERT INTO numbers VALUES (2)").lastrowid, is_brief=True)
    go_on.set()
    assert (await first, await second) == (1, 2)
    await writer.aclose()


async def test_the_loop_goes_on_while_another_program_holds_the_file(
    tmp_path: Path, connection: sqlite3.Connection
) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())
    assert await writer.submit(thread_of, is_brief=True) == threading.get_ident()
    other = sqlite3.connect(tmp_path / "file", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write = writer.submit(thread_of, is_brief=True)
    turns = 0
    while turns < 50:
        await asyncio.sleep(0)
        turns += 1
    assert not write.done()
    other.execute("ROLLBACK")
    assert await write != threading.get_ident()
    other.close()
    await writer.aclose()


async def test_a_brief_write_that_cannot_be_done_takes_none_of_its_group_with_it(
    connection: sqlite3.Connection,
) -> None:
    writer = GroupWriter(connection, asyncio.get_running_loop())

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (?)", (object(),))

    before, lost = writer.submit(thread_of, is_brief=True), writer.submit(fail, series="b", is_brief=True)
    await before
    with pytest.raises(JournalError, match="this step was not stored"):
        await lost
    with pytest.raises(JournalError, match="an earlier write"):
        await writer.submit(thread_of, series="b", is_brief=True)
    await writer.aclose()


@pytest.mark.slow
async def test_the_log_stays_short_however_many_brief_writes_there_are(
    tmp_path: Path, connection: sqlite3.Connection
) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    writer = GroupWriter(connection, asyncio.get_running_loop())
    page = "x" * 4000
    for _ in range(6 * LOG_PAGES):
        await writer.submit(lambda c: c.execute("INSERT INTO numbers VALUES (?)", (page,)).rowcount, is_brief=True)
    assert (tmp_path / "file-wal").stat().st_size < 3 * LOG_PAGES * 4096
    await writer.aclose()
