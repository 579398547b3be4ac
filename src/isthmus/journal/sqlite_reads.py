"""The SQL queries of the embedded journal, on their own connection and thread.

:mod:`isthmus.journal.base` documents each query.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

from typing_extensions import override

from isthmus.client import Delivery, TaskPlace, TaskQuery
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
from isthmus.journal.base import SEARCHED_TASKS, EventT, FoundRows, Journal, JournalError, TaskRow, TaskSearch
from isthmus.journal.schema import open_reader
from isthmus.journal.searching import FIRST_PROMPT, TITLE, WORKSPACE, TaskMatcher, search_conditions
from isthmus.journal.statements import (
    BEGUN_BY,
    BY_MESSAGE,
    COLUMNS,
    DELETED,
    INBOX,
    INBOX_BY_MESSAGE,
    INBOX_BY_TYPE,
    JSON,
    after_condition,
    delivery_of,
    row_from,
    task_conditions,
)

T = TypeVar("T")


class RowReader(Protocol):
    """A function that reads rows on the journal's reading thread."""

    async def __call__(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        """Return the decoded rows."""
        ...


_LAST = 2**63 - 1
"""Number above that of any event."""
_NOT_IN_SESSION = tuple(kind.__name__ for kind in (TextContent, Thought, RetryNotice))
_MESSAGES = tuple(kind.__name__ for kind in (Prompt, Command, ModelReply, AgentMessage))


class SqliteReads(Journal):
    """The queries of a :class:`~isthmus.journal.base.Journal` in the file at ``path``."""

    def __init__(self, path: Path) -> None:
        self._reader = open_reader(path)
        self._reading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="isthmus-journal-read")

    @override
    async def task(self, task_id: str) -> TaskRow | None:
        rows = await self.read(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,), row_from)
        return rows[0] if rows else None

    @override
    async def version(self) -> int:
        (found,) = await self.read("PRAGMA data_version", (), lambda values: int(values[0]))
        return found

    @override
    async def children(self, task_id: str) -> Sequence[TaskRow]:
        # "parent <> ''" is the condition of the index.
        return await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE parent = ? AND parent <> '' AND state <> ? ORDER BY key",
            (task_id, DELETED),
            row_from,
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
        # The plus keeps SQLite from using an index: most tasks match, and the order by change finds the first at once.
        whose, values = ("", ()) if user is None else (f"{'' if states else '+'}user = ? AND ", (user,))
        return await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE {whose}{'' if states else '+'}state IN ({marks})"
            " ORDER BY updated DESC, key DESC LIMIT ?",
            (*values, *wanted, limit),
            row_from,
        )

    @override
    async def list_tasks(self, query: TaskQuery, user: str, roots: Sequence[str] = ()) -> tuple[Sequence[TaskRow], int]:
        fits, values = task_conditions(query, user, roots)
        after, place = after_condition(query)
        found = await self.read(
            f"SELECT {COLUMNS} FROM tasks WHERE {fits}{after} ORDER BY updated DESC, id LIMIT ?",
            (*values, *place, query.limit),
            row_from,
        )
        (total,) = await self.read(f"SELECT count(*) FROM tasks WHERE {fits}", values, lambda row: int(row[0]))
        return found, total

    @override
    async def search(self, search: TaskSearch, user: str, roots: Sequence[str] = ()) -> FoundRows:
        fits, values = search_conditions(search, user, roots)
        after, place = after_condition(TaskQuery(after=search.after))
        found: list[tuple[TaskRow, str]] = []
        looked: list[TaskPlace] = []
        matches = TaskMatcher(search.words)

        def look(row: Sequence[Any]) -> None:
            if len(found) >= search.limit:
                return
            *columns, updated, body = row
            looked.append(TaskPlace(updated, columns[0]))
            if (prompt := matches.prompt_of(columns[TITLE], columns[WORKSPACE], body)) is not None:
                found.append((row_from(columns), prompt))

        rows = await self.read(
            f"SELECT {COLUMNS}, updated, {FIRST_PROMPT} FROM tasks WHERE {fits}{after}"
            " ORDER BY updated DESC, id LIMIT ?",
            (*values, *place, SEARCHED_TASKS),
            look,
        )
        (total,) = await self.read(f"SELECT count(*) FROM tasks WHERE {fits}", values, lambda row: int(row[0]))
        is_done = len(rows) < SEARCHED_TASKS and len(looked) == len(rows)
        return FoundRows(found, len(looked), total, None if is_done else looked[-1])

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
        waiting = await self.read(INBOX_BY_MESSAGE, (task_id, JSON(message_id)), delivery_of)
        taken = await self.read(BY_MESSAGE, (task_id, 0, message_id), delivery_of)
        return [*taken, *waiting]

    @override
    async def workspace_of(self, context_id: str, user: str = "") -> str | None:
        query = "SELECT workspace FROM tasks WHERE context = ? AND user = ? ORDER BY key LIMIT 1"
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
            "SELECT seq, at, body FROM events INDEXED BY artifact_events"
            " WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type = 'ArtifactUpdate' ORDER BY seq",
            (task_id,),
            delivery_of,
        )

    @override
    async def session(self, context_id: str, user: str = "") -> Sequence[tuple[str, Delivery]]:
        return await self.read(
            "SELECT events.seq, events.at, events.body, tasks.id FROM tasks JOIN events ON events.task = tasks.key"
            " WHERE tasks.context = ? AND tasks.user = ? AND events.type NOT IN (?, ?, ?)"
            " ORDER BY tasks.key, events.seq",
            (context_id, user, *_NOT_IN_SESSION),
            lambda values: (values[3], delivery_of(values)),
        )

    async def close_reader(self) -> None:
        """Finish the queries that are running, then close; later ones fail."""
        await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()

    async def read(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        """Return the decoded rows.

        Raises:
            JournalError: they cannot be read.
        """

        def work() -> list[T]:
            return [decode(found) for found in self._reader.execute(query, values)]

        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, work)
        except (sqlite3.Error, RuntimeError) as error:
            raise JournalError(f"the journal could not be read ({error})") from error
