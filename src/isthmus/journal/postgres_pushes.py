"""The push targets of a journal in PostgreSQL."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isthmus.journal.postgres_connection import Connection
from isthmus.journal.postgres_reads import POSTGRES, numbered
from isthmus.journal.postgres_sql import storable
from isthmus.journal.postgres_writer import PostgresWriter
from isthmus.journal.sql_pushes import SqlPushes
from isthmus.journal.sql_reads import RowReader

if TYPE_CHECKING:
    import asyncio


class PostgresPushes(SqlPushes):
    """A :class:`~isthmus.journal.pushes.PushJournal` in a database."""

    def __init__(self, writer: PostgresWriter, read: RowReader) -> None:
        super().__init__(read, writer.now, POSTGRES)
        self._writer = writer

    @override
    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> "asyncio.Future[int]":
        stored = [[storable(value) if isinstance(value, str) else value for value in row] for row in rows]

        async def work(connection: Connection, now: float) -> int:
            changed = 0
            for row in stored:
                status = await connection.execute(numbered(statement), *row)
                changed += int(status.rpartition(" ")[2])
            return changed

        return self._writer.run(work)
