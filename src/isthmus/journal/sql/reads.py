"""The queries of a journal in an SQL database. :mod:`isthmus.journal.port.base` documents each query.

Not here: connections; a journal of a kind of database implements :meth:`SqlReads.read`.
"""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from typing_extensions import override

from isthmus.client import Delivery, TaskQuery
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    Command,
    Prompt,
    RetryNotice,
    TaskState,
    TextContent,
    Thought,
    event_from_json,
)
from isthmus.internal_events import ModelReply
from isthmus.journal.port.base import EventT, Journal, TaskCount
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.sql.rows import (
    BEGUN_BY,
    BY_MESSAGE,
    COLUMNS,
    DELETED,
    INBOX,
    INBOX_BY_TYPE,
    JSON,
    SqlDialect,
    after_condition,
    delivery_of,
    inbox_by_message,
    row_from,
    task_conditions,
)

T = TypeVar("T")


class RowReader(Protocol):
    """A function that reads rows of a journal. Each question mark in a query stands for a value."""

    async def __call__(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        """Return the decoded rows.

        Raises:
            JournalError: they cannot be read.
        """
        ...


class RowWriter(Protocol):
    """A function that queues a statement for a journal, once for each row of values."""

    def __call__(self, statement: str, rows: Sequence[Sequence[Any]]) -> "asyncio.Future[int]":
        """Return the number of changed rows, once the write is committed."""
        ...


def changed(write: RowWriter, statement: str, values: Sequence[Any]) -> "asyncio.Future[bool]":
    """Queue a statement; the result is whether it changed a row."""
    written = write(statement, [values])

    async def is_changed() -> bool:
        return await written > 0

    return asyncio.ensure_future(is_changed())


_LAST = 2**63 - 1
"""Number above that of any event."""
_NOT_IN_SESSION = tuple(kind.__name__ for kind in (TextContent, Thought, RetryNotice))
_MESSAGES = tuple(kind.__name__ for kind in (Prompt, Command, ModelReply, AgentMessage))


class SqlReads(Journal):
    """The queries of a :class:`~isthmus.journal.port.base.Journal`."""

    dialect: SqlDialect
    """Language of the database."""

    @abstractmethod
    async def read(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        """Return the decoded rows; see :class:`RowReader`."""

    @override
    async def task(self, task_id: str) -> TaskRow | None:
        rows = await self.read(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,), row_from)
        return rows[0] if rows else None

    @override
    async def children(self, task_id: str) -> Sequence[TaskRow]:
        # "parent <> ''" is the condition of the index.
        return await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE parent = ? AND parent <> '' AND state <> ? ORDER BY key",
            (task_id, DELETED),
            row_from,
        )

    @override
    async def counts(self, *, by_user: bool = False) -> Sequence[TaskCount]:
        columns = 'state, "user"' if by_user else "state"
        return await self.read(
            f"SELECT count(*), {columns} FROM tasks WHERE state <> ? GROUP BY {columns}",
            (DELETED,),
            lambda values: TaskCount(TaskState(values[1]), int(values[0]), *values[2:]),
        )

    @override
    async def find(self, beginning: str, limit: int) -> Sequence[TaskRow]:
        return await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE substr(id, 1, ?) = ? AND state <> ? ORDER BY key LIMIT ?",
            (len(beginning), beginning, DELETED, limit),
            row_from,
        )

    @override
    async def tasks(self, limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> Sequence[TaskRow]:
        wanted = states or tuple(TaskState)
        marks = ", ".join("?" * len(wanted))
        # Without states most tasks match, and the order by change finds the first at once.
        plain = "" if states else self.dialect.unindexed
        whose, values = ("", ()) if user is None else (f'{plain}"user" = ? AND ', (user,))
        return await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE {whose}{plain}state IN ({marks})"
            " ORDER BY updated DESC, key DESC LIMIT ?",
            (*values, *wanted, limit),
            row_from,
        )

    @override
    async def list_tasks(self, query: TaskQuery, user: str, roots: Sequence[str] = ()) -> tuple[Sequence[TaskRow], int]:
        fits, values = task_conditions(query, user, roots, self.dialect)
        after, place = after_condition(query)
        found = await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE {fits}{after} ORDER BY updated DESC, id LIMIT ?",
            (*values, *place, query.limit),
            row_from,
        )
        total = await self._count(fits, values)
        return found, total

    async def _count(self, fits: str, values: Sequence[Any]) -> int:
        """Return the number of tasks that fit conditions; no task fits a text that the database cannot hold."""
        counts = await self.read(f"SELECT count(*) FROM tasks WHERE {fits}", values, lambda row: int(row[0]))
        return sum(counts)

    @override
    async def inbox(self, task_id: str) -> Sequence[AgentEvent]:
        return await self.read(INBOX, (task_id,), lambda values: event_from_json(json.loads(values[0])))

    @override
    async def waiting(self, task_id: str, kind: type[EventT]) -> Sequence[EventT]:
        events = await self.read(
            INBOX_BY_TYPE, (task_id, kind.__name__), lambda values: event_from_json(json.loads(values[0]))
        )
        return [event for event in events if isinstance(event, kind)]

    @override
    async def of_message(self, task_id: str, message_id: str) -> Sequence[Delivery]:
        # The inbox first: an event leaves it when it is added to the task's events.
        waiting = await self.read(inbox_by_message(self.dialect), (task_id, JSON(message_id)), delivery_of)
        taken = await self.read(BY_MESSAGE, (task_id, 0, message_id), delivery_of)
        return [*taken, *waiting]

    @override
    async def workspace_of(self, context_id: str, user: str = "") -> str | None:
        fits = "context = ? AND \"user\" = ? AND workspace <> ''"
        query = f"SELECT workspace FROM tasks WHERE {fits} ORDER BY key LIMIT 1"
        found = await self.read(query, (context_id, user), lambda values: str(values[0]))
        return found[0] if found else None

    @override
    async def begun_by(self, user: str, message_id: str) -> Sequence[tuple[str, str]]:
        return await self.read(
            BEGUN_BY, (message_id, user, DELETED, TaskState.CANCELED), lambda values: (values[0], values[1])
        )

    @override
    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        return await self.read(
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ?"
            " ORDER BY seq LIMIT ?",
            (task_id, after, limit),
            delivery_of,
        )

    @override
    async def messages(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Delivery]:
        newest_first = await self.read(
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?)"
            " AND type IN (?, ?, ?, ?) AND seq < ? ORDER BY seq DESC LIMIT ?",
            (task_id, *_MESSAGES, _LAST if before is None else before, limit),
            delivery_of,
        )
        return newest_first[::-1]

    @override
    async def artifacts(self, task_id: str) -> Sequence[Delivery]:
        return await self.read(
            f"SELECT seq, at, body FROM events{self.dialect.artifacts}"
            " WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type = 'ArtifactUpdate' ORDER BY seq",
            (task_id,),
            delivery_of,
        )

    @override
    async def session(self, context_id: str, user: str = "") -> Sequence[tuple[str, Delivery]]:
        return await self.read(
            "SELECT events.seq, events.at, events.body, tasks.id FROM tasks JOIN events ON events.task = tasks.key"
            ' WHERE tasks.context = ? AND tasks."user" = ? AND events.type NOT IN (?, ?, ?)'
            " ORDER BY tasks.key, events.seq",
            (context_id, user, *_NOT_IN_SESSION),
            lambda values: (values[3], delivery_of(values)),
        )
