"""The queue of a journal in PostgreSQL. :mod:`isthmus.journal.port.queue` documents each method.

Free slots are filled by one statement: it locks the tasks that start next, passes over those that another process is
about to take, and leases them. Before it, the users whose limits matter are locked, as for every write that counts
their tasks. Otherwise two processes could each start the last task that is allowed.
"""

from collections.abc import Awaitable, Callable, Sequence

from typing_extensions import override

from isthmus.journal.port.queue import QueueScope, no_grace
from isthmus.journal.port.task_changes import TaskChanges
from isthmus.journal.port.task_rows import ClaimedTask
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.reads import numbered
from isthmus.journal.postgres.statements import lock_user_counts
from isthmus.journal.postgres.writer import PostgresWriter
from isthmus.journal.sql.queue import AT_WORK, LEASED, RESERVED, SqlQueue, abandoned, for_owner, in_scope, taken_task
from isthmus.journal.sql.reads import RowReader
from isthmus.journal.sql.rows import COLUMNS, row_from
from isthmus.journal.sql.writes import EventWriter

_TAKEN = ", ".join(f"tasks.{name.strip()}" for name in COLUMNS.split(","))
_AT_WORK = (
    f"at_work AS MATERIALIZED (SELECT \"user\" AS name, count(*) AS running FROM tasks WHERE {AT_WORK} AND parent = ''"
)
"""Beginning of a WITH query for the numbers of tasks at work of users."""
_RUNNING = 'coalesce((SELECT running FROM at_work WHERE name = "user"), 0)'


class PostgresQueue(SqlQueue):
    """The queue in the database that ``writer`` writes."""

    def __init__(self, writer: PostgresWriter, submit: EventWriter, read: RowReader, changes: TaskChanges) -> None:
        super().__init__(submit, read, writer.now, changes)
        self._writer = writer

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
            waiting = f"tag > 0 AND parent = '' AND {fits} AND {free}"
            users = await _lock_limited(connection, waiting, (*of_scope, *of_free), limit)
            at_most = 0 if users is None else limit
            statement = (
                f'WITH {_AT_WORK} AND "user" = ANY(?::text[]) GROUP BY 1),'
                f' waiting AS (SELECT key, tag, {RESERVED}, "user" AS name, running_limit FROM tasks WHERE {waiting}'
                f' AND (running_limit IS NULL OR ("user" = ANY(?::text[]) AND running_limit > {_RUNNING}))'
                " ORDER BY tag, key LIMIT ? FOR UPDATE SKIP LOCKED),"
                " placed AS (SELECT *, row_number() OVER (PARTITION BY name ORDER BY tag, key)"
                " + coalesce((SELECT running FROM at_work WHERE at_work.name = waiting.name), 0) AS place"
                " FROM waiting),"
                " allowed AS (SELECT key, tag, owner, lease_until FROM placed"
                " WHERE running_limit IS NULL OR place <= running_limit),"
                " left_behind AS (SELECT key, tag, owner, lease_until FROM tasks"
                f" WHERE {left} AND parent = '' AND {fits}"
                # Not "ORDER BY key": for that PostgreSQL reads the index of all keys, those of ended tasks, too.
                " ORDER BY lease_until, key LIMIT ? FOR UPDATE SKIP LOCKED),"
                " next AS (SELECT * FROM (SELECT * FROM allowed UNION ALL SELECT * FROM left_behind) AS every"
                " ORDER BY tag, key LIMIT ?),"
                # The lowest of the tags: the others of this step are not before a task that comes next.
                " started AS (UPDATE queue SET started = (SELECT min(tag) FROM next WHERE tag > 0)"
                " WHERE started < (SELECT min(tag) FROM next WHERE tag > 0))"
                f" UPDATE tasks SET {LEASED} FROM next WHERE tasks.key = next.key"
                f" RETURNING next.tag, tasks.key, next.owner, next.lease_until, {_TAKEN}"
            )
            found = await connection.fetch(
                numbered(statement),
                *(users or [], owner, lease_seconds, *of_scope, *of_free, users or [], at_most),
                *(*values, *of_scope, limit, limit),
                *(owner, now + lease_seconds),
            )
            ordered = sorted(found, key=lambda values: (values[0], values[1]))
            return [taken_task(owner, row_from(tuple(values)[4:]), values[0], *values[2:4]) for values in ordered]

        return self._writer.run(work)


async def _lock_limited(
    connection: Connection, waiting: str, values: Sequence[object], limit: int
) -> Sequence[str] | None:
    """Return the users with limits of the ``limit`` tasks that start next, and keep others from counting their tasks.

    Until the end of the transaction no other process begins a task of theirs that counts. ``waiting`` is the condition
    for the tasks that may be taken, with its values. None: no task may start.
    """
    found = await connection.fetch(
        numbered(
            f'WITH {_AT_WORK} GROUP BY 1) SELECT DISTINCT "user", running_limit IS NULL FROM'
            f' (SELECT "user", running_limit FROM tasks WHERE {waiting}'
            f" AND (running_limit IS NULL OR running_limit > {_RUNNING}) ORDER BY tag, key LIMIT ?) AS next"
        ),
        *(*values, limit),
    )
    users = [str(user) for user, is_free in found if not is_free]
    await lock_user_counts(connection, users)
    return users if found else None
