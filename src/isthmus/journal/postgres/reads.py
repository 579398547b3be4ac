"""The connections with which a journal in PostgreSQL reads."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from typing_extensions import override

from isthmus.journal.port.base import JournalError, JournalUnavailable
from isthmus.journal.postgres.connection import AWAY, Database, end, explain_reading
from isthmus.journal.postgres.driver import Connection, is_lost
from isthmus.journal.postgres.statements import storable
from isthmus.journal.sql.reads import SqlReads
from isthmus.journal.sql.rows import SqlDialect
from isthmus.runtime.large_work import off_loop

T = TypeVar("T")

POSTGRES = SqlDialect("", "strpos", "", "JOIN")
CONNECTIONS = 4
"""Maximum number of connections that read at the same time."""
ROWS_ON_LOOP = 64
"""Maximum number of rows that are decoded on the event loop; more would hold it up."""
READ_SECONDS = 30.0
"""Maximum time in seconds for which a query waits for a connection."""


@lru_cache(maxsize=512)
def numbered(query: str) -> str:
    """Return a query with numbered values in place of question marks."""
    parts = query.split("?")
    return parts[0] + "".join(f"${number}{part}" for number, part in enumerate(parts[1:], 1))


class PostgresReads(SqlReads):
    """The queries of a :class:`~isthmus.journal.port.base.Journal` in a database."""

    dialect = POSTGRES

    def __init__(self, database: Database) -> None:
        self._database = database
        self._free: list[Connection] = []
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._is_closed = False

    @override
    async def version(self) -> int:
        # The position of the log is behind each commit; the oldest running transaction tells which of them are seen.
        rows = await self.read(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,"
            " pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
            (),
            lambda values: (int(values[0]) << 64) | int(values[1]),
        )
        return rows[0]

    @override
    async def read(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        if any(isinstance(value, str) and storable(value) != value for value in values):
            return []  # PostgreSQL takes no such text, so that no row has it as its id
        rows: Sequence[Sequence[Any]]
        try:
            async with asyncio.timeout(READ_SECONDS), self._slots:
                rows = await self._fetch(numbered(query), values)
        except JournalError:
            raise
        except Exception as error:
            if is_lost(error):
                raise JournalUnavailable(AWAY) from error
            raise JournalError(explain_reading(error)) from error
        if len(rows) > ROWS_ON_LOOP:
            return await asyncio.to_thread(lambda: [decode(found) for found in rows])
        size = sum(len(value) for found in rows for value in found if isinstance(value, str))
        return await off_loop(size, lambda: [decode(found) for found in rows])

    async def _fetch(self, query: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return the rows; once more with a new connection, if the one that was free was lost."""
        if self._is_closed:
            raise JournalError("the journal is closed; it cannot be read")
        while True:
            was_free = bool(self._free)
            connection = self._free.pop() if was_free else await self._database.connect()
            try:
                rows = await connection.fetch(query, *values)
            except BaseException as error:
                connection.terminate()
                if was_free and isinstance(error, Exception) and is_lost(error):
                    continue
                raise
            if self._is_closed:
                await end(connection)
            else:
                self._free.append(connection)
            return rows

    async def close_readers(self) -> None:
        """Close the connections; later queries fail."""
        self._is_closed = True
        for connection in self._free:
            await end(connection)
        self._free.clear()
