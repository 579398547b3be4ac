import asyncio
import sqlite3
from pathlib import Path

import pytest

from isthmus.journal.writer import GroupWriter

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
