"""The queue of a journal in PostgreSQL. :mod:`isthmus.journal.queue` documents each method.

A free slot is filled by one statement: it locks the tasks that start next, passes over those that another process is
about to take, and leases them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from typing_extensions import override

from isthmus.client import NO_LIMITS, UserLimits
from isthmus.events import AgentEvent
from isthmus.journal.postgres_driver import Connection
from isthmus.journal.postgres_reads import numbered
from isthmus.journal.postgres_writer import PostgresWriter
from isthmus.journal.queue import QueueScope, no_grace
from isthmus.journal.rows import COLUMNS, row_from
from isthmus.journal.sql_queue import RESERVED, SqlQueue, abandoned, for_owner, in_scope, taken_task
from isthmus.journal.sql_reads import RowReader
from isthmus.journal.task_changes import TaskChanges
from isthmus.journal.task_rows import ClaimedTask, NewTask, QueuedTask, TaskRow
from isthmus.journal.task_writes import Claim, Create, TaskWrite
from isthmus.journal.writer import Written

_TAKEN = ", ".join(f"tasks.{name.strip()}" for name in COLUMNS.split(","))
Submit = Callable[[Sequence[AgentEvent], Callable[[Sequence[str]], TaskWrite]], Written[Any]]
"""Queues a write, which is made from the bodies of its events."""


class PostgresQueue(SqlQueue):
    """The queue in the database that ``writer`` writes."""

    def __init__(self, writer: PostgresWriter, submit: Submit, read: RowReader, changes: TaskChanges) -> None:
        super().__init__(read, writer.now)
        self._writer = writer
        self._submit = submit
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
    def take(
        self,
        owner: str,
        lease_seconds: float,
        limit: int,
        scope: QueueScope,
        gone: Sequence[str] = (),
        is_in_grace: Callable[[], bool] = no_grace,
    ) -> Awaitable[Sequence[ClaimedTask]]:
        fits, of_scope = in_scope(scope)

        async def work(connection: Connection, now: float) -> Sequence[ClaimedTask]:
            in_grace = is_in_grace()
            left, values = abandoned(scope, now, gone, in_grace=in_grace)
            free, of_free = for_owner(scope, owner, gone, now - lease_seconds, in_grace=in_grace)
            statement = (
                f"WITH waiting AS (SELECT key, tag, {RESERVED} FROM tasks"
                f" WHERE tag > 0 AND parent = '' AND {fits} AND {free}"
                " ORDER BY tag, key LIMIT ? FOR UPDATE SKIP LOCKED),"
                " left_behind AS (SELECT key, tag, owner, lease_until FROM tasks"
                f" WHERE {left} AND parent = '' AND {fits}"
                # Not "ORDER BY key": for that PostgreSQL reads the index of all keys, those of ended tasks, too.
                " ORDER BY lease_until, key LIMIT ? FOR UPDATE SKIP LOCKED),"
                " next AS (SELECT * FROM (SELECT * FROM waiting UNION ALL SELECT * FROM left_behind) AS every"
                " ORDER BY tag, key LIMIT ?),"
                # The lowest of the tags: the others of this step are not before a task that comes next.
                " started AS (UPDATE queue SET started = (SELECT min(tag) FROM next WHERE tag > 0)"
                " WHERE started < (SELECT min(tag) FROM next WHERE tag > 0))"
                " UPDATE tasks SET owner = ?, epoch = tasks.epoch + 1, lease_until = ?, tag = 0, reserved = ''"
                f" FROM next WHERE tasks.key = next.key RETURNING next.tag, tasks.key,"
                f" next.owner, next.lease_until, {_TAKEN}"
            )
            found = await connection.fetch(
                numbered(statement),
                *(owner, lease_seconds, *of_scope, *of_free, limit, *values, *of_scope, limit, limit),
                *(owner, now + lease_seconds),
            )
            ordered = sorted(found, key=lambda values: (values[0], values[1]))
            return [taken_task(owner, row_from(tuple(values)[4:]), values[0], *values[2:4]) for values in ordered]

        return self._writer.run(work)
