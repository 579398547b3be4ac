"""Copies into a journal's file. It is written beside its place, as ``NAME.incomplete``, and put there when whole."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from typing_extensions import override

from isthmus.files.atomic import exclusive
from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.copy_target import COUNTS, Copied, OnProgress, Target
from isthmus.journal.sql.tables import StoredTable, quoted
from isthmus.journal.sqlite.connections import open_writer
from isthmus.journal.sqlite.schema import INCOMPLETE, VERSION
from isthmus.journal.sqlite.snapshot import connect_existing, explained, in_thread, sqlite_snapshot

BACKUP_PAGES = 2000
"""Number of pages that a backup copies in one step."""
_BESIDE = ("", "-wal", "-shm", "-journal")
"""Suffixes of a file and of those that SQLite puts beside it."""


class SqliteTarget(Target):
    """A new file, until it is complete."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection

    @override
    async def write(self, table: StoredTable, rows: Sequence[Sequence[Any]]) -> int:
        made = {column for column, _ in table.made}
        kept = [number for number, column in enumerate(table.columns) if column not in made]
        columns = [table.columns[number] for number in kept]
        if table.name == "tasks":
            lease, values = ", lease_until", ", 0"
        else:
            lease, values = "", ""
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table.name} ({quoted(columns)}{lease}) VALUES ({marks}{values})"

        def work() -> None:
            self.connection.execute("BEGIN")
            self.connection.executemany(statement, ([row[number] for number in kept] for row in rows))
            self.connection.execute("COMMIT")

        with explained(self.path):
            await in_thread(work, self.connection.interrupt)
        return 0

    @override
    async def finish(self, *, started: int) -> None:
        def work() -> None:
            self.connection.execute("UPDATE queue SET started = ?", (started,))
            self.connection.execute(f"PRAGMA user_version={VERSION}")

        with explained(self.path):
            await in_thread(work, self.connection.interrupt)


@asynccontextmanager
async def sqlite_target(path: Path, agent: str | None) -> AsyncGenerator[SqliteTarget]:
    """Make the file of a journal for the agent of this name, if it has one; put it at ``path`` at the end.

    Raises:
        JournalError: there is a file, or it cannot be written.
    """
    with _new_file(path) as draft:
        connection = open_writer(draft, (agent,) if agent is not None else ())
        try:
            with explained(draft):
                # Until it is whole no program opens it, whatever its name is.
                connection.execute(f"PRAGMA user_version={INCOMPLETE}")
                connection.execute("PRAGMA synchronous=OFF")
            yield SqliteTarget(path, connection)
            with explained(draft):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()


async def back_up(source: Path, target: Path, on_progress: OnProgress) -> Copied:
    """Copy a journal's file while processes work with it; the copy has the moment at which this began.

    Raises:
        JournalError: there is no journal at ``source``, a file at ``target``, or one of them cannot be used.
    """
    async with sqlite_snapshot(source) as snapshot:
        with _new_file(target) as draft:
            copy = connect_existing(draft)
            try:
                with explained(draft):
                    stopped = threading.Event()
                    await in_thread(lambda: _copy_pages(snapshot.connection, copy, on_progress, stopped), stopped.set)
                    counted = await in_thread(lambda: _release(copy), copy.interrupt)
            finally:
                copy.close()
    return counted


def _copy_pages(
    source: sqlite3.Connection, copy: sqlite3.Connection, on_progress: OnProgress, stopped: threading.Event
) -> None:
    def progress(status: int, remaining: int, total: int) -> None:
        del status
        if stopped.is_set():
            raise JournalError("the copy was stopped")
        on_progress(total - remaining, total)

    # The source is in a read transaction, so that the pages are those of one moment, and no write begins it anew.
    source.backup(copy, pages=BACKUP_PAGES, progress=progress, sleep=0)


def _release(copy: sqlite3.Connection) -> Copied:
    """Remove the leases of a copy; return what it has."""
    copy.execute("PRAGMA synchronous=OFF")
    copy.execute("BEGIN")
    copy.execute("UPDATE tasks SET owner = NULL, lease_until = 0 WHERE owner IS NOT NULL")
    if copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'pushes'").fetchone() is not None:
        copy.execute("UPDATE pushes SET owner = NULL WHERE owner IS NOT NULL")
    copy.execute("COMMIT")
    copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    tasks, events = copy.execute(COUNTS).fetchone()
    return Copied(tasks, events)


@contextlib.contextmanager
def _new_file(path: Path) -> Generator[Path]:
    """Yield the path of a new empty file for the owner alone; put the file at ``path`` if nothing fails."""
    # A log that belongs to another file would be taken for the new one's, and damage it.
    for suffix in _BESIDE:
        if os.path.lexists(found := path.with_name(path.name + suffix)):
            raise JournalError(f"{found} exists already; move it away, or name another file. Nothing was changed.")
    draft = path.with_name(path.name + ".incomplete")
    with contextlib.ExitStack() as stack:
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                stack.enter_context(exclusive(path.parent, 0))
            except TimeoutError as error:
                raise JournalError(f"another journal is being copied into {path.parent}; wait until it is") from error
            _remove(draft)  # of a copy that was interrupted
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        stack.callback(_remove, draft)
        yield draft
        with explained(path):
            _write_to_disk(draft)
            try:
                os.link(draft, path)  # unlike a renaming, this replaces no file that has come there
            except FileExistsError:
                raise JournalError(f"{path} has come into being meanwhile; nothing was changed.") from None
            except OSError:  # a file system without hard links
                draft.rename(path)
            _write_to_disk(path.parent)


def _write_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(draft: Path) -> None:
    for suffix in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            draft.with_name(draft.name + suffix).unlink()
