"""Removal of tasks from the embedded journal."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from isthmus.events import TaskState
from isthmus.journal.port.base import JournalError
from isthmus.journal.port.removed_tokens import BODIES, FORGET, NOTE, TYPES, Used, day_of, used_in
from isthmus.journal.sql.reads import RowReader
from isthmus.journal.sql.removal import ENDED, MARK, WAITING, SqlRemoval
from isthmus.journal.sql.rows import DELETED, SQLITE
from isthmus.journal.sql.sessions import DROP_NOTE, DROP_QUEUE, KEEP_TITLE, SESSION_OF
from isthmus.journal.sqlite.connections import empty_log, open_reader
from isthmus.journal.sqlite.writer import GroupWriter

T = TypeVar("T")


def _mark(connection: sqlite3.Connection, task_id: str, states: Sequence[TaskState], begun: int) -> bool:
    """Mark a task at rest in one of these states; return whether there was one. ``begun`` is when the day began."""
    user = connection.execute("SELECT user FROM tasks WHERE id = ?", (task_id,)).fetchone()
    session = connection.execute(SESSION_OF, (task_id,)).fetchone()
    connection.execute(KEEP_TITLE, (task_id, task_id, DELETED))
    found = connection.execute(
        "UPDATE tasks SET id = ? || id, context = ? || id, state = ?, workspace = '', title = '',"
        " \"user\" = '', pending = '[]', error = NULL, reason = NULL"
        f" WHERE id = ? AND owner IS NULL AND state IN ({', '.join('?' * len(states))}) RETURNING key",
        (MARK, MARK, DELETED, task_id, *states),
    ).fetchone()
    if found is None:
        return False
    bodies = connection.execute(BODIES, (*found, begun, *TYPES)).fetchall()
    if (used := used_in(body for (body,) in bodies)) != Used():
        connection.execute(NOTE, (*user, task_id, begun, used.tokens, used.cost))
    connection.execute("DELETE FROM inbox WHERE task = ?", found)
    connection.execute("DELETE FROM pushes WHERE task = ?", found)
    connection.execute("DELETE FROM messages WHERE task = ?", found)
    if session is not None:
        connection.execute(DROP_NOTE, session)
        connection.execute(DROP_QUEUE, session)
    return True


class SqliteRemoval(SqlRemoval):
    """A :class:`~isthmus.journal.port.base.Removal` on the threads of an SqliteJournal."""

    def __init__(self, path: Path, writer: GroupWriter, read: RowReader, clock: Callable[[], float]) -> None:
        super().__init__(read, SQLITE)
        self._clock = clock
        self._path = path
        self._writer = writer

    @override
    def mark(self, task_ids: Sequence[str], *, also_waiting: bool = False) -> Awaitable[Sequence[str]]:
        states = (*ENDED, *WAITING) if also_waiting else ENDED

        def work(connection: sqlite3.Connection) -> Sequence[str]:
            begun = day_of(self._clock())
            connection.execute(FORGET, (begun,))
            marked = [task_id for task_id in task_ids if _mark(connection, task_id, states, begun)]
            for task_id in marked:
                children = "SELECT id FROM tasks WHERE parent = ? AND parent <> '' AND state <> ?"
                for (child,) in connection.execute(children, (task_id, DELETED)).fetchall():
                    _mark(connection, child, (*ENDED, *WAITING), begun)
            return marked

        return self._writer.submit(work)

    @override
    def remove(self, task_id: str, rows: int) -> Awaitable[bool]:
        def work(connection: sqlite3.Connection) -> bool:
            found = connection.execute("SELECT key FROM tasks WHERE id = ?", (MARK + task_id,)).fetchone()
            if found is None:
                return True
            last = connection.execute(
                "SELECT max(seq) FROM (SELECT seq FROM events WHERE task = ? ORDER BY seq LIMIT ?)", (found[0], rows)
            ).fetchone()[0]
            if last is not None:
                connection.execute("DELETE FROM events WHERE task = ? AND seq <= ?", (found[0], last))
            if connection.execute("SELECT 1 FROM events WHERE task = ? LIMIT 1", found).fetchone() is not None:
                return False
            connection.execute("DELETE FROM tasks WHERE key = ?", found)
            return True

        return self._writer.submit(work)

    @override
    async def shares(self) -> Mapping[str, int]:
        def work() -> Mapping[str, int]:
            # On a connection of its own: it takes long, and other readers are waiting.
            with contextlib.closing(open_reader(self._path)) as connection:
                rows = connection.execute(
                    'SELECT tasks."user", sum(length(events.body)) FROM events JOIN tasks ON tasks.key = events.task'
                    ' WHERE tasks.state <> ? GROUP BY tasks."user"',
                    (DELETED,),
                ).fetchall()
            return {str(user): int(size) for user, size in rows}

        try:
            return await asyncio.to_thread(work)
        except sqlite3.Error as error:
            raise JournalError(f"the journal could not be read ({error})") from error

    @override
    async def size(self) -> int:
        query = (
            "SELECT (pages.page_count - free.freelist_count) * page.page_size"
            " FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS page"
        )
        return (await self._read(query, (), lambda values: int(values[0])))[0]

    @override
    async def free_pages(self) -> int:
        return (await self._read("PRAGMA freelist_count", (), lambda values: int(values[0])))[0]

    @override
    def give_back(self, pages: int) -> Awaitable[None]:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(f"PRAGMA incremental_vacuum({pages:d})").fetchall()

        return self._writer.submit(work)

    @override
    async def erase(self) -> bool:
        try:
            return await asyncio.to_thread(empty_log, self._path)
        except sqlite3.Error as error:
            raise JournalError(f"the log beside {self._path} could not be emptied ({error})") from error
