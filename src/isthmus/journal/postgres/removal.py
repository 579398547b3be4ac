"""Removal of tasks from a journal in PostgreSQL. The space that it leaves is vacuumed and used again by the database.

The size of a task is that of its events, kept in its row, and of its files.
"""

from collections.abc import Awaitable, Mapping, Sequence

from typing_extensions import override

from isthmus.journal.port.removed_tokens import BODIES, FORGET, NOTE, TYPES, Used, day_of, used_in
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.reads import POSTGRES, numbered
from isthmus.journal.postgres.writer import PostgresWriter
from isthmus.journal.sql.reads import RowReader
from isthmus.journal.sql.removal import ENDED, MARK, WAITING, SqlRemoval
from isthmus.journal.sql.rows import DELETED
from isthmus.journal.sql.sessions import DROP_NOTE, KEEP_TITLE, SESSION_OF

_LOCKED = (
    'SELECT key, id, "user" FROM tasks WHERE id = ANY($1::text[]) AND owner IS NULL AND state = ANY($2::text[])'
    " ORDER BY id FOR UPDATE"
)
_FILES = 8
"""Maximum number of files that one step removes."""
_MARK = (
    f"UPDATE tasks SET id = '{MARK}' || id, context = '{MARK}' || id, state = '{DELETED}', workspace = '', title = '',"
    " \"user\" = '', pending = '[]', error = NULL, reason = NULL, inbox = 0, size = 0 WHERE key = ANY($1::bigint[])"
)


class PostgresRemoval(SqlRemoval):
    """A :class:`~isthmus.journal.port.base.Removal` in a database."""

    def __init__(self, writer: PostgresWriter, read: RowReader) -> None:
        super().__init__(read, POSTGRES)
        self._writer = writer

    @override
    def mark(self, task_ids: Sequence[str], *, also_waiting: bool = False) -> Awaitable[Sequence[str]]:
        states = [*ENDED, *WAITING] if also_waiting else [*ENDED]

        async def work(connection: Connection, now: float) -> Sequence[str]:
            begun = day_of(now)
            await connection.execute(numbered(FORGET), begun)
            marked = await _mark(connection, task_ids, states, begun)
            children = await connection.fetch(
                "SELECT id FROM tasks WHERE parent = ANY($1::text[]) AND parent <> '' AND state <> $2", marked, DELETED
            )
            await _mark(connection, [child[0] for child in children], [*ENDED, *WAITING], begun)
            return marked

        return self._writer.run(work)

    @override
    def remove(self, task_id: str, rows: int) -> Awaitable[bool]:
        async def work(connection: Connection, now: float) -> bool:
            key: int | None = await connection.fetchval("SELECT key FROM tasks WHERE id = $1", MARK + task_id)
            if key is None:
                return True
            files: str = await connection.execute(
                "DELETE FROM files WHERE task = $1 AND name IN (SELECT name FROM files WHERE task = $1 LIMIT $2)",
                *(task_id, _FILES),
            )
            if int(files.rpartition(" ")[2]) == _FILES:
                return False  # there may be more
            removed: str = await connection.execute(
                "DELETE FROM events WHERE task = $1 AND seq <= (SELECT max(seq) FROM"
                " (SELECT seq FROM events WHERE task = $1 ORDER BY seq LIMIT $2) AS oldest)",
                *(key, rows),
            )
            if int(removed.rpartition(" ")[2]) == rows:
                return False  # there may be more
            await connection.execute("DELETE FROM tasks WHERE key = $1", key)
            return True

        return self._writer.run(work)

    @override
    async def shares(self) -> Mapping[str, int]:
        query = (
            'SELECT "user", sum(size)::bigint FROM (SELECT "user", size FROM tasks WHERE state <> ? UNION ALL'
            ' SELECT "user", octet_length(data) FROM files JOIN tasks ON tasks.id = files.task) AS owned'
            ' GROUP BY "user"'
        )
        return dict(await self._read(query, (DELETED,), lambda values: (str(values[0]), int(values[1]))))

    @override
    async def size(self) -> int:
        query = (
            "SELECT (SELECT coalesce(sum(size), 0) FROM tasks)::bigint"
            " + (SELECT coalesce(sum(octet_length(data)), 0) FROM files)::bigint"
        )
        return (await self._read(query, (), lambda row: int(row[0])))[0]

    @override
    async def free_pages(self) -> int:
        return 0

    @override
    async def give_back(self, pages: int) -> None:
        """Leave it to the database's own vacuum."""

    @override
    async def erase(self) -> bool:
        return True


async def _mark(connection: Connection, task_ids: Sequence[str], states: Sequence[str], begun: int) -> list[str]:
    """Mark those of these tasks that are at rest in one of the states; return their ids in the given order.

    ``begun`` is when the day began.
    """
    rows = await connection.fetch(_LOCKED, task_ids, states)
    for key, task_id, user in rows:
        bodies = await connection.fetch(numbered(BODIES), key, float(begun), *TYPES)
        if (used := used_in(body for (body,) in bodies)) != Used():
            await connection.execute(numbered(NOTE), user, task_id, begun, used.tokens, used.cost)
    keys = [row[0] for row in rows]
    sessions: list[Sequence[str]] = []
    for _, task_id, _ in rows:
        sessions += await connection.fetch(numbered(SESSION_OF), task_id)
        await connection.execute(numbered(KEEP_TITLE), task_id, task_id, DELETED)
    await connection.execute(_MARK, keys)
    for session in sessions:
        await connection.execute(numbered(DROP_NOTE), *session)
    for table in ("inbox", "pushes", "messages"):
        await connection.execute(f"DELETE FROM {table} WHERE task = ANY($1::bigint[])", keys)
    found = {row[1] for row in rows}
    return [task_id for task_id in task_ids if task_id in found]
