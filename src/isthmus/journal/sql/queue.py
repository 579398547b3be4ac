"""The queue of a journal in an SQL database: the conditions and queries that are the same in each.

:mod:`isthmus.journal.port.queue` documents each method.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from isthmus.client import NO_LIMITS, UserLimits
from isthmus.events import AgentEvent
from isthmus.journal.port.queue import QueueScope, TaskQueue
from isthmus.journal.port.task_changes import TaskChanges
from isthmus.journal.port.task_rows import ClaimedTask, FormerLease, Lease, NewTask, QueuedTask, TaskRow
from isthmus.journal.sql.reads import RowReader
from isthmus.journal.sql.rows import COLUMNS, below_roots, row_from
from isthmus.journal.sql.task_writes import Claim, Create
from isthmus.journal.sql.writes import EventWriter

RESERVED = "nullif(nullif(reserved, ''), ?) AS owner, updated + ? AS lease_until"
"""The other process for which a waiting task is reserved, and the end of that time.

The values of the statement's marks are this process and the length of the time in seconds.
"""
AT_WORK = "state IN ('submitted', 'working') AND tag = 0"
"""Condition for the tasks that are at work, also when their process has ended."""
LEASED = "owner = ?, epoch = tasks.epoch + 1, lease_until = ?, tag = 0, reserved = '', running_limit = NULL"
"""Columns of a task that leaves the queue, or that an ended process has left, for its new owner and the lease's end."""


def in_scope(scope: QueueScope) -> tuple[str, list[Any]]:
    """Return the SQL condition for the tasks of a scope, and its values."""
    condition = f"label IN ({', '.join('?' * len(scope.labels))})"
    values: list[Any] = [*scope.labels]
    if scope.roots:
        inside, places = below_roots(scope.roots)
        condition += f" AND {inside}"
        values += places
    return condition, values


def for_owner(
    scope: QueueScope, owner: str, gone: Sequence[str], since: float, *, in_grace: bool = False
) -> tuple[str, list[Any]]:
    """Return the SQL condition for the waiting tasks that are not reserved for another process, and its values.

    Tasks that have waited since before ``since`` are anybody's, unless ``in_grace``.
    """
    if scope.is_reserved:
        return "reserved = ?", [owner]
    owners = ("", owner, *gone)
    unreserved = f"reserved IN ({', '.join('?' * len(owners))})"
    return (unreserved, [*owners]) if in_grace else (f"({unreserved} OR updated < ?)", [*owners, since])


def abandoned(scope: QueueScope, now: float, gone: Sequence[str], *, in_grace: bool = False) -> tuple[str, list[Any]]:
    """Return the SQL condition for the tasks at work that no process holds any more, and its values.

    With ``in_grace`` a task whose lease ran out is left to its owner, unless that is ``gone``.
    """
    if scope.is_reserved:
        return "key < 0", []
    owners = f" OR owner IN ({', '.join('?' * len(gone))})" if gone else ""
    expired, values = ("owner IS NULL", []) if in_grace else ("lease_until < ?", [now])
    return f"{AT_WORK} AND ({expired}{owners})", [*values, *gone]


def taken_task(owner: str, row: TaskRow, tag: int, former: str | None, until: float) -> ClaimedTask:
    """Return a task that ``owner`` took, with its former start tag, owner and end of the lease."""
    left = FormerLease(former, until) if former is not None else None
    return ClaimedTask(Lease(row.task_id, owner, row.epoch), row, (), tag > 0, left)


class SqlQueue(TaskQueue):
    """Additions to a queue, and its queries. ``now`` returns the time of the journal's clock in Unix seconds."""

    def __init__(self, submit: EventWriter, read: RowReader, now: Callable[[], float], changes: TaskChanges) -> None:
        self._submit = submit
        self._read = read
        self._now = now
        self._changes = changes

    @override
    def add(self, task: NewTask, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS) -> Awaitable[QueuedTask]:
        written = self._submit(events, lambda bodies: Create(task, events, bodies, None, 0.0, limits))
        self._changes.follow(task.task_id, written)
        return written

    @override
    def resume(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS, reserved: str = ""
    ) -> Awaitable[QueuedTask | None]:
        written = self._submit(events, lambda bodies: Claim(row, events, bodies, None, 0.0, limits, reserved))
        self._changes.follow(row.task_id, written)
        return written

    @override
    async def abandoned_children(
        self, limit: int, scope: QueueScope, gone: Sequence[str] = (), *, in_grace: bool = False
    ) -> Sequence[TaskRow]:
        left, values = abandoned(scope, self._now(), gone, in_grace=in_grace)
        fits, of_scope = in_scope(scope)
        query = (
            f"SELECT {COLUMNS} FROM tasks WHERE {left} AND {fits} AND parent <> '' ORDER BY lease_until, key LIMIT ?"
        )
        return await self._read(query, (*values, *of_scope, limit), row_from)

    @override
    async def owners(self) -> Mapping[str, float]:
        query = f"SELECT owner, max(lease_until) FROM tasks WHERE {AT_WORK} AND owner IS NOT NULL GROUP BY owner"
        return dict(await self._read(query, (), lambda values: (str(values[0]), float(values[1]))))

    @override
    async def holds_back(self, scope: QueueScope) -> bool:
        if scope.is_reserved:
            return False  # what is reserved has no limit
        fits, of_scope = in_scope(scope)
        query = f"SELECT 1 FROM tasks WHERE tag > 0 AND parent = '' AND running_limit IS NOT NULL AND {fits} LIMIT 1"
        return bool(await self._read(query, of_scope, lambda values: True))

    @override
    async def length(self) -> int:
        (found,) = await self._read("SELECT count(*) FROM tasks WHERE tag > 0", (), lambda values: int(values[0]))
        return found
