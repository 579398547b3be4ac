"""The push targets in the embedded journal."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isthmus.journal.rows import SQLITE
from isthmus.journal.sql_pushes import SqlPushes
from isthmus.journal.sql_reads import RowReader
from isthmus.journal.writer import GroupWriter

if TYPE_CHECKING:
    import asyncio


class SqlitePushes(SqlPushes):
    """A :class:`~isthmus.journal.pushes.PushJournal` on the threads of an SqliteJournal."""

    def __init__(self, writer: GroupWriter, read: RowReader, clock: Callable[[], float]) -> None:
        super().__init__(read, clock, SQLITE)
        self._writer = writer

    @override
    def write(self, statement: str, rows: Sequence[Sequence[Any]]) -> "asyncio.Future[int]":
        def work(connection: sqlite3.Connection) -> int:
            return connection.executemany(statement, rows).rowcount

        return self._writer.submit(work)
