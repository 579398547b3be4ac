"""The connection with which the embedded journal reads, on a thread of its own."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.reads import SqlReads
from isthmus.journal.sql.rows import SQLITE
from isthmus.journal.sqlite.connections import open_reader

T = TypeVar("T")


class SqliteReads(SqlReads):
    """The queries of a :class:`~isthmus.journal.port.base.Journal` in the file at ``path``."""

    dialect = SQLITE

    def __init__(self, path: Path) -> None:
        self._reader = open_reader(path)
        self._reading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="isthmus-journal-read")

    @override
    async def version(self) -> int:
        (found,) = await self.read("PRAGMA data_version", (), lambda values: int(values[0]))
        return found

    async def close_reader(self) -> None:
        """Finish the queries that are running, then close; later ones fail."""
        await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()

    @override
    async def read(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        def work() -> list[T]:
            return [decode(found) for found in self._reader.execute(query, values)]

        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, work)
        except (sqlite3.Error, RuntimeError) as error:
            raise JournalError(f"the journal could not be read ({error})") from error
