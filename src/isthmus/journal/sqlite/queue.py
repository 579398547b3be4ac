"""The queue of the embedded journal. :mod:`isthmus.journal.port.queue` documents each method."""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from typing_extensions import override

from isthmus.journal.port.queue import QueueScope, no_grace
from isthmus.journal.port.task_changes import TaskChanges
from isthmus.journal.port.task_rows import ClaimedTask
from isthmus.journal.sql.queue import AT_WORK, LEASED, RESERVED, SqlQueue, abandoned, for_owner, in_scope, taken_task
from isthmus.journal.sql.reads import RowReader
from isthmus.journal.sql.rows import COLUMNS, row_from
from isthmus.journal.sql.writes import EventWriter
from isthmus.journal.sqlite.writer import GroupWriter

_RUNNING = f"(SELECT count(*) FROM tasks AS other WHERE other.user = tasks.user AND {AT_WORK} AND parent = '')"
"""Number of tasks of a task's user that are at work. Its index is ``tasks_at_work``."""


class SqliteQueue(SqlQueue):
    """The queue in the file that ``writer`` writes. ``clock`` returns Unix seconds."""

    def __init__(
        self,
        writer: GroupWriter,
        submit: EventWriter,
        read: RowReader,
        clock: Callable[[], float],
        changes: TaskChanges,
    ) -> None:
        super().__init__(submit, read, clock, changes)
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
        now = self._now()
        fits, of_scope = in_scope(scope)

        def work(connection: sqlite3.Connection) -> Sequence[ClaimedTask]:
            in_grace = is_in_grace()
            left, values = abandoned(scope, now, gone, in_grace=in_grace)
            free, of_free = for_owner(scope, owner, gone, now - lease_seconds, in_grace=in_grace)
            found: list[Sequence[Any]] = connection.execute(
                f"SELECT key, tag, owner, lease_until FROM tasks WHERE {left} AND parent = '' AND {fits}"
                " ORDER BY key LIMIT ?",
                (*values, *of_scope, limit),
            ).fetchall()
            waiting = connection.execute(
                f"SELECT key, tag, {RESERVED}, user, running_limit, {_RUNNING} FROM tasks WHERE tag > 0"
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
                connection.execute(f"UPDATE tasks SET {LEASED} WHERE key = ?", (owner, now + lease_seconds, key))
            row = f"SELECT {COLUMNS} FROM tasks WHERE key = ?"
            return [
                taken_task(owner, row_from(connection.execute(row, (key,)).fetchone()), tag, former, until)
                for key, tag, former, until in found
            ]

        return self._writer.submit(work)


def _within_limits(waiting: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield those waiting tasks that may start, one after the other: user, limit and number at work come last."""
    begun: Counter[str] = Counter()
    for *row, user, most, running in waiting:
        if most is None or running + begun[user] < most:
            begun[user] += 1
            yield row
