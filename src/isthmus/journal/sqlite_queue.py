"""The queue of the embedded journal. :mod:`isthmus.journal.queue` documents each method."""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from typing_extensions import override

from isthmus.client import NO_LIMITS, UserLimits
from isthmus.events import AgentEvent
from isthmus.journal.queue import QueueScope, no_grace
from isthmus.journal.rows import are_brief
from isthmus.journal.sql_queue import AT_WORK, RESERVED, SqlQueue, abandoned, for_owner, in_scope, taken_task
from isthmus.journal.sql_reads import RowReader
from isthmus.journal.statements import check_limits, check_new_message, claim_task, insert_task, row_of
from isthmus.journal.task_changes import TaskChanges
from isthmus.journal.task_rows import ClaimedTask, NewTask, QueuedTask, TaskRow
from isthmus.journal.write_group import start_tag
from isthmus.journal.writer import GroupWriter

_RUNNING = f"(SELECT count(*) FROM tasks AS other WHERE other.user = tasks.user AND {AT_WORK} AND parent = '')"
"""Number of tasks of a task's user that are at work. Its index is ``tasks_at_work``."""


class SqliteQueue(SqlQueue):
    """The queue in the file that ``writer`` writes. ``clock`` returns Unix seconds."""

    def __init__(self, writer: GroupWriter, read: RowReader, clock: Callable[[], float], changes: TaskChanges) -> None:
        super().__init__(read, clock)
        self._writer = writer
        self._changes = changes

    @override
    def add(self, task: NewTask, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS) -> Awaitable[QueuedTask]:
        now = self._now()

        def work(connection: sqlite3.Connection) -> QueuedTask:
            check_new_message(connection, task)
            check_limits(connection, task.user, limits, queues=True)
            tag = _next_tag(connection, task.user)
            return QueuedTask(*insert_task(connection, task, events, None, 0.0, now, tag, limits.max_running))

        written = self._writer.submit(work, is_brief=are_brief(events))
        self._changes.follow(task.task_id, written)
        return written

    @override
    def resume(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS, reserved: str = ""
    ) -> Awaitable[QueuedTask | None]:
        now = self._now()

        def work(connection: sqlite3.Connection) -> QueuedTask | None:
            check_limits(connection, row.user, limits, row.task_id, queues=True)
            tag = _next_tag(connection, row.user)
            found = claim_task(connection, row, events, None, 0.0, now, tag, reserved, limits.max_running)
            return None if found is None else QueuedTask(*found)

        written = self._writer.submit(work, is_brief=are_brief(events))
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
        now = self._now()
        fits, of_scope = in_scope(scope)

        def work(connection: sqlite3.Connection) -> Sequence[ClaimedTask]:
            in_grace = is_in_grace()
            left, values = abandoned(scope, now, gone, in_grace=in_grace)
            free, of_free = for_owner(scope, owner, gone, now - lease_seconds, in_grace=in_grace)
            found: list[Sequence[Any]] = connection.execute(
                f"SELECT key, tag, id, owner, lease_until FROM tasks WHERE {left} AND parent = '' AND {fits}"
                " ORDER BY key LIMIT ?",
                (*values, *of_scope, limit),
            ).fetchall()
            waiting = connection.execute(
                f"SELECT key, tag, id, {RESERVED}, user, running_limit, {_RUNNING} FROM tasks WHERE tag > 0"
                f" AND parent = '' AND {fits} AND {free} AND (running_limit IS NULL OR running_limit > {_RUNNING})"
                " ORDER BY tag, key",
                (owner, lease_seconds, *of_scope, *of_free),
            )
            found += itertools.islice(_within_limits(waiting), limit - len(found))
            waiting.close()
            # The lowest of the tags: the others of this step are not before a task that comes next.
            if tags := [tag for _, tag, *_ in found if tag]:
                connection.execute("UPDATE queue SET started = max(started, ?)", (min(tags),))
            for key, *_ in found:
                connection.execute(
                    "UPDATE tasks SET owner = ?, epoch = epoch + 1, lease_until = ?, tag = 0, reserved = '',"
                    " running_limit = NULL WHERE key = ?",
                    (owner, now + lease_seconds, key),
                )
            return [
                taken_task(owner, row_of(connection, task_id), tag, former, until)
                for _, tag, task_id, former, until in found
            ]

        return self._writer.submit(work)


def _within_limits(waiting: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield those waiting tasks that may start, one after the other: user, limit and number at work come last."""
    begun: Counter[str] = Counter()
    for *row, user, most, running in waiting:
        if most is None or running + begun[user] < most:
            begun[user] += 1
            yield row


def _next_tag(connection: sqlite3.Connection, user: str) -> int:
    started, newest = connection.execute(
        "SELECT started, (SELECT ifnull(max(tag), 0) FROM tasks WHERE tag > 0 AND user = ?) FROM queue", (user,)
    ).fetchone()
    return start_tag(started, newest)
