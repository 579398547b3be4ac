"""The queue of a journal in an SQL database: the conditions and queries that are the same in each.

:mod:`isthmus.journal.queue` documents each method.
"""

from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from isthmus.journal.queue import QueueScope, TaskQueue
from isthmus.journal.rows import COLUMNS, below_roots, row_from
from isthmus.journal.sql_reads import RowReader
from isthmus.journal.task_rows import TaskRow

_AT_WORK = "state IN ('submitted', 'working')"


def in_scope(scope: QueueScope) -> tuple[str, list[Any]]:
    """Return the SQL condition for the tasks of a scope, and its values."""
    condition = f"label IN ({', '.join('?' * len(scope.labels))})"
    values: list[Any] = [*scope.labels]
    if scope.roots:
        inside, places = below_roots(scope.roots)
        condition += f" AND {inside}"
        values += places
    return condition, values


def abandoned(now: float, gone: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the SQL condition for the tasks at work that no process holds any more, and its values."""
    owners = f" OR owner IN ({', '.join('?' * len(gone))})" if gone else ""
    return f"{_AT_WORK} AND tag = 0 AND (lease_until < ?{owners})", [now, *gone]


class SqlQueue(TaskQueue):
    """The queries of a queue. ``now`` returns the time of the journal's clock in Unix seconds."""

    def __init__(self, read: RowReader, now: Callable[[], float]) -> None:
        self._read = read
        self._now = now

    @override
    async def abandoned_children(self, limit: int, scope: QueueScope, gone: Sequence[str] = ()) -> Sequence[TaskRow]:
        left, values = abandoned(self._now(), gone)
        fits, of_scope = in_scope(scope)
        query = f"SELECT {COLUMNS} FROM tasks WHERE {left} AND {fits} AND parent <> '' ORDER BY key LIMIT ?"
        return await self._read(query, (*values, *of_scope, limit), row_from)

    @override
    async def owners(self) -> Sequence[str]:
        query = f"SELECT DISTINCT owner FROM tasks WHERE {_AT_WORK} AND tag = 0 AND owner IS NOT NULL"
        return await self._read(query, (), lambda values: str(values[0]))

    @override
    async def length(self) -> int:
        (found,) = await self._read("SELECT count(*) FROM tasks WHERE tag > 0", (), lambda values: int(values[0]))
        return found
