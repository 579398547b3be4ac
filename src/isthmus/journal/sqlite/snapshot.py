"""A journal's file as it is at one moment: :class:`~isthmus.journal.sql.snapshot.Snapshot` on SQLite."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.processes import Process, owner_process, refuse_holders
from isthmus.journal.sql.snapshot import BATCH_CHARACTERS, BATCH_ROWS, Snapshot, newer
from isthmus.journal.sql.tables import StoredTable, quoted
from isthmus.journal.sqlite.connections import BUSY_SECONDS, explain, holder, incomplete
from isthmus.journal.sqlite.schema import APPLICATION_ID, INCOMPLETE, VERSION

T = TypeVar("T")
_LOCKS = Path("/proc/locks")
_FIRST_LOCK = 0x40000000
"""Offset in the file at which SQLite's locks begin."""
_DAMAGES = 20
"""Maximum number of damages that SQLite lists."""


class SqliteSnapshot(Snapshot):
    """A journal's file, seen by one read transaction of ``connection``."""

    def __init__(self, path: Path, connection: sqlite3.Connection, version: int) -> None:
        self.path = path
        self.connection = connection
        self.name = str(path)
        self.version = version
        self.newest = VERSION

    @override
    async def read(self, query: str) -> Sequence[Sequence[Any]]:
        with explained(self.path):
            return await self._run(lambda: self.connection.execute(query).fetchall())

    @override
    async def rows(self, table: StoredTable) -> AsyncIterator[Sequence[Sequence[Any]]]:
        made = dict(table.made)
        columns = ", ".join(made.get(column, f'"{column}"') for column in table.columns)
        query = f"SELECT {columns} FROM {table.name} ORDER BY {quoted(table.key)}"
        with explained(self.path):
            cursor = await self._run(lambda: self.connection.execute(query))
        while batch := await self._batch(cursor):
            yield batch

    async def _batch(self, cursor: sqlite3.Cursor) -> list[Sequence[Any]]:
        def work() -> list[Sequence[Any]]:
            batch: list[Sequence[Any]] = []
            size = 0
            for row in cursor:
                batch.append(row)
                size += sum(len(value) for value in row if isinstance(value, str))
                if size >= BATCH_CHARACTERS or len(batch) == BATCH_ROWS:
                    break
            return batch

        with explained(self.path):
            return await self._run(work)

    async def _run(self, work: Callable[[], T]) -> T:
        return await in_thread(work, self.connection.interrupt)

    @override
    async def has(self, table: str) -> bool:
        return bool(await self.read(f"SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{table}'"))

    @override
    async def agent(self) -> str | None:
        with explained(self.path):
            return holder(self.connection)

    @override
    async def size(self) -> int:
        files = [self.path, *(self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-shm"))]
        return sum(file.stat().st_size for file in files if file.exists())

    @override
    async def processes(self) -> Sequence[Process]:
        owners = await self.read(
            "SELECT owner, count(*), max(lease_until) > (julianday('now') - 2440587.5) * 86400.0 FROM tasks"
            " WHERE owner IS NOT NULL GROUP BY owner ORDER BY owner"
        )
        found = [owner_process(str(owner), count, None if is_held else False) for owner, count, is_held in owners]
        return with_openers(self.path, found)

    @override
    async def damage(self) -> Sequence[str]:
        try:
            found = await self.read(f"PRAGMA integrity_check({_DAMAGES})")
        except JournalError as error:  # damaged so badly that the check itself fails
            return [str(error)]
        return [str(row[0]) for row in found if row[0] != "ok"]


async def in_thread(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """Run work on a connection in a thread. When this is cancelled, ``stop`` the work, and wait until it has ended.

    The connection can be closed then.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # it is not of interest
        raise


def with_openers(path: Path, owners: Sequence[Process]) -> Sequence[Process]:
    """Return the owners of leases, and the other processes of this machine that have the file open."""
    opened = openers_of(path)
    known = {process.pid for process in owners}
    return [*owners, *(Process(pid=pid, is_alive=True) for pid in sorted(opened) if pid not in known)]


def openers_of(path: Path) -> set[int]:
    """Return the ids of the other processes that hold a lock of SQLite on a file; Linux tells, others do not."""
    try:
        number = path.stat().st_ino
        lines = _LOCKS.read_text("ascii", "replace").splitlines()
    except OSError:
        return set()
    found: set[int] = set()
    for line in lines:  # "1: POSIX  ADVISORY  READ 15019 fe:00:2400632 1073741826 1073742335"
        match line.split():
            case [_, "POSIX", _, _, pid, file, start, _] if (
                file.rpartition(":")[2] == str(number)
                and start.isdecimal()
                and int(start) >= _FIRST_LOCK
                and pid.isdecimal()
                and int(pid) > 0
            ):
                found.add(int(pid))
            case _:
                pass
    return found - {os.getpid()}


@asynccontextmanager
async def sqlite_snapshot(path: Path, *, alone: bool = False) -> AsyncGenerator[SqliteSnapshot]:
    """Open the journal's file; see :func:`isthmus.journal.opening.snapshot_of`."""
    connection, version = await asyncio.to_thread(_open, path, alone)
    try:
        yield SqliteSnapshot(path, connection, version)
    finally:
        connection.close()


def _open(path: Path, alone: bool) -> tuple[sqlite3.Connection, int]:
    """Return a connection in its read transaction, and the version of the file."""
    if not path.is_file():
        raise JournalError(f"there is no journal at {path}. Name another file, or another folder with --data-dir.")
    with explained(path):
        connection = connect_existing(path)
    try:
        connection.text_factory = _text
        with explained(path):
            version = check_file(connection, path)
            connection.execute("PRAGMA query_only=ON")
        if alone:
            _hold(connection, path)
        with explained(path):
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # the view begins here
    except BaseException:
        connection.close()
        raise
    return connection, version


def connect_existing(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that exists, which is not created if it has gone."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def check_file(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a journal's file.

    Raises:
        JournalError: it is not a journal, not complete, or newer than this program.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID or version < 1:
        raise JournalError(f"{path} is not a journal of Isthmus; name the file of one.")
    if version == INCOMPLETE:
        raise incomplete(path)
    if version > VERSION:
        raise newer(str(path), version, VERSION)
    return version


def _hold(connection: sqlite3.Connection, path: Path) -> None:
    """Keep all other processes from the file until the connection is closed.

    In this mode a connection takes the file for itself before it reads the log, or fails when another has it open.
    """
    try:
        connection.execute("PRAGMA busy_timeout=100")
        connection.execute("PRAGMA query_only=OFF")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA query_only=ON")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise JournalError(explain(path, error, 0.1)) from error
        refuse_holders(str(path), with_openers(path, ()), is_held=True)


@contextlib.contextmanager
def explained(path: Path) -> Generator[None]:
    """Raise a JournalError for what SQLite or the file system raises about a file."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise JournalError(explain(path, error, BUSY_SECONDS)) from error


def _text(raw: bytes) -> str:
    """Return a text of a row; bytes that are not UTF-8 become halves of surrogate pairs."""
    return raw.decode("utf-8", "surrogateescape")
