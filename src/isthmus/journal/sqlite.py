"""The embedded journal: SQLite in WAL mode, one writer thread, reads on a thread of their own.

What each statement is for is said in :mod:`isthmus.journal.base`; this module is only the SQL.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from isthmus.client import Delivery
from isthmus.codec import from_json, to_json
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    ModelReply,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCall,
    event_from_json,
    event_to_json,
)
from isthmus.journal.base import Finished, JournalError, Lease, NewTask, StaleLease, Taken, TaskRow
from isthmus.journal.schema import open_reader, open_writer
from isthmus.journal.writer import GroupWriter

T = TypeVar("T")

_COLUMNS = (
    "id, context, workspace, title, state, seq, owner, epoch, lease_until, created, updated, error, reason, pending"
)
_LAST = 2**63 - 1
"""More than any event's number."""
_INBOX = "SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) ORDER BY number"
_NOT_IN_SESSION = tuple(kind.__name__ for kind in (TextContent, Thought, RetryNotice))
_ROWS_AT_ONCE = 16
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MESSAGES = tuple(kind.__name__ for kind in (Prompt, ModelReply))


class SqliteJournal:
    """A :class:`~isthmus.journal.base.Journal` in one file. Made by :meth:`open`, on the running event loop."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._writer = GroupWriter(open_writer(path), asyncio.get_running_loop())
        self._reader = open_reader(path)
        self._reading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="isthmus-journal-read")

    @classmethod
    async def open(cls, path: Path, clock: Callable[[], float] = time.time) -> "SqliteJournal":
        """Open the file, or make it.

        Raises:
            JournalError: it is unreadable, locked, newer than this program, or of another program; it is left as it is.
        """
        return cls(path, clock)

    # --- writing ---

    def create(self, task: NewTask, events: Sequence[AgentEvent], owner: str, lease_seconds: float) -> Awaitable[Taken]:
        """See :meth:`isthmus.journal.base.Journal.create`."""
        now = self._clock()
        until = now + lease_seconds
        made = (task.task_id, task.context_id, task.workspace, task.title)

        def work(connection: sqlite3.Connection) -> Taken:
            try:
                cursor = connection.execute(
                    "INSERT INTO tasks (id, context, workspace, title, state, seq, owner, epoch, lease_until, created,"
                    " updated) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?)",
                    (*made, TaskState.SUBMITTED, len(events), owner, until, now, now),
                )
            except sqlite3.IntegrityError as error:
                raise JournalError(f"task {task.task_id} exists already; task ids are made once") from error
            deliveries = _insert(connection, cursor.lastrowid or 0, 0, now, events)
            row = TaskRow(*made, TaskState.SUBMITTED, len(events), owner, 1, until, now, now)
            return Taken(Lease(task.task_id, owner, 1), row, deliveries)

        return self._writer.submit(work)

    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        """See :meth:`isthmus.journal.base.Journal.append`."""
        now = self._clock()
        return self._writer.submit(
            lambda connection: _append(connection, lease, events, now), full_sync=full_sync, series=lease
        )

    def finish(
        self,
        lease: Lease,
        events: Sequence[AgentEvent],
        pending: Sequence[ToolCall],
        *,
        discard_inbox: bool = False,
    ) -> Awaitable[Finished]:
        """See :meth:`isthmus.journal.base.Journal.finish`."""
        now = self._clock()
        questions = _JSON([to_json(call) for call in pending])

        def work(connection: sqlite3.Connection) -> Finished:
            inbox = _inbox(connection, lease.task_id)
            if inbox and not discard_inbox:
                return Finished((), inbox)
            deliveries = _append(connection, lease, events, now, at_end=questions)
            if inbox:
                _remove_from_inbox(connection, lease.task_id, len(inbox))
            return Finished(deliveries)

        return self._writer.submit(work, series=lease)

    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        """See :meth:`isthmus.journal.base.Journal.take`."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Sequence[Delivery]:
            deliveries = _append(connection, lease, events, now)
            _remove_from_inbox(connection, lease.task_id, count)
            return deliveries

        return self._writer.submit(work, series=lease)

    def claim(
        self, row: TaskRow, events: Sequence[AgentEvent], owner: str, lease_seconds: float
    ) -> Awaitable[Taken | None]:
        """See :meth:`isthmus.journal.base.Journal.claim`."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Taken | None:
            changed = connection.execute(
                "UPDATE tasks SET state = ?, owner = ?, epoch = epoch + 1, lease_until = ?, pending = '[]',"
                " error = NULL, reason = NULL WHERE id = ? AND owner IS NULL AND epoch = ? RETURNING epoch",
                (TaskState.WORKING, owner, now + lease_seconds, row.task_id, row.epoch),
            ).fetchone()
            if changed is None:
                return None
            lease = Lease(row.task_id, owner, changed[0])
            deliveries = _append(connection, lease, events, now)
            return Taken(lease, _row_of(connection, row.task_id), deliveries)

        return self._writer.submit(work)

    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> Awaitable[Taken | None]:
        """See :meth:`isthmus.journal.base.Journal.take_over`."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Taken | None:
            changed = connection.execute(
                "UPDATE tasks SET owner = ?, epoch = epoch + 1, lease_until = ? WHERE id = ? AND epoch = ?"
                " RETURNING epoch",
                (owner, now + lease_seconds, row.task_id, row.epoch),
            ).fetchone()
            if changed is None:
                return None
            return Taken(Lease(row.task_id, owner, changed[0]), _row_of(connection, row.task_id), ())

        return self._writer.submit(work)

    def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Awaitable[Sequence[Lease]]:
        """See :meth:`isthmus.journal.base.Journal.renew`."""
        until = self._clock() + lease_seconds

        def work(connection: sqlite3.Connection) -> Sequence[Lease]:
            lost: list[Lease] = []
            for lease in leases:
                cursor = connection.execute(
                    "UPDATE tasks SET lease_until = ? WHERE id = ? AND epoch = ? AND owner = ?",
                    (until, lease.task_id, lease.epoch, lease.owner),
                )
                if cursor.rowcount == 0:
                    lost.append(lease)
            return lost

        return self._writer.submit(work)

    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        """See :meth:`isthmus.journal.base.Journal.release`."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE tasks SET owner = NULL, lease_until = 0 WHERE id = ? AND epoch = ? AND owner = ?",
                [(lease.task_id, lease.epoch, lease.owner) for lease in leases],
            )

        return self._writer.submit(work)

    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        """See :meth:`isthmus.journal.base.Journal.post`."""
        bodies = [_encode(event) for event in events]
        calls = {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}

        def work(connection: sqlite3.Connection) -> None:
            found = connection.execute(
                "SELECT key FROM tasks WHERE id = ? AND epoch = ? AND owner IS NOT NULL", (row.task_id, row.epoch)
            ).fetchone()
            if found is None:
                raise StaleLease(f"task {row.task_id} is not running as it was; nobody would read the message")
            if calls and not calls.isdisjoint(_answered(connection, row)):
                raise StaleLease(f"a tool call of task {row.task_id} has got another answer meanwhile")
            connection.executemany(
                "INSERT INTO inbox (task, body) VALUES (?, ?)", [(found[0], body) for body in bodies]
            )

        return self._writer.submit(work)

    def cancelled(self, leases: Sequence[Lease]) -> Awaitable[Sequence[str]]:
        """See :meth:`isthmus.journal.base.Journal.cancelled`."""

        def work(connection: sqlite3.Connection) -> Sequence[str]:
            found: list[str] = []
            for lease in leases:
                query = "SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ? AND epoch = ?)"
                bodies = connection.execute(query, (lease.task_id, lease.epoch)).fetchall()
                if any(isinstance(event_from_json(json.loads(body)), StateChange) for (body,) in bodies):
                    found.append(lease.task_id)
            return found

        return self._writer.submit(work)

    # --- reading ---

    async def task(self, task_id: str) -> TaskRow | None:
        """See :meth:`isthmus.journal.base.Journal.task`."""
        rows = await self._read(f"SELECT {_COLUMNS} FROM tasks WHERE id = ?", (task_id,), _row)  # noqa: S608 - a constant
        return rows[0] if rows else None

    async def tasks(self, limit: int, states: Sequence[TaskState] = ()) -> Sequence[TaskRow]:
        """See :meth:`isthmus.journal.base.Journal.tasks`."""
        wanted = states or tuple(TaskState)
        marks = ", ".join("?" * len(wanted))
        return await self._read(
            f"SELECT {_COLUMNS} FROM tasks WHERE state IN ({marks}) ORDER BY updated DESC, key DESC LIMIT ?",  # noqa: S608 - only question marks are put in
            (*wanted, limit),
            _row,
        )

    async def inbox(self, task_id: str) -> Sequence[AgentEvent]:
        """See :meth:`isthmus.journal.base.Journal.inbox`."""
        return await self._read(_INBOX, (task_id,), lambda values: event_from_json(json.loads(values[0])))

    async def workspace_of(self, context_id: str) -> str | None:
        """See :meth:`isthmus.journal.base.Journal.workspace_of`."""
        query = "SELECT workspace FROM tasks WHERE context = ? ORDER BY key LIMIT 1"
        found = await self._read(query, (context_id,), lambda values: str(values[0]))
        return found[0] if found else None

    def now(self) -> float:
        """See :meth:`isthmus.journal.base.Journal.now`."""
        return self._clock()

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        """See :meth:`isthmus.journal.base.Journal.events`."""
        return await self._read(
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ?"
            " ORDER BY seq LIMIT ?",
            (task_id, after, limit),
            _delivery,
        )

    async def messages(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Delivery]:
        """See :meth:`isthmus.journal.base.Journal.messages`."""
        newest_first = await self._read(
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type IN (?, ?)"
            " AND seq < ? ORDER BY seq DESC LIMIT ?",
            (task_id, *_MESSAGES, _LAST if before is None else before, limit),
            _delivery,
        )
        return newest_first[::-1]

    async def session(self, context_id: str) -> Sequence[tuple[str, Delivery]]:
        """See :meth:`isthmus.journal.base.Journal.session`."""
        return await self._read(
            "SELECT events.seq, events.at, events.body, tasks.id FROM tasks JOIN events ON events.task = tasks.key"
            " WHERE tasks.context = ? AND events.type NOT IN (?, ?, ?) ORDER BY tasks.key, events.seq",
            (context_id, *_NOT_IN_SESSION),
            lambda values: (values[3], _delivery(values)),
        )

    async def aclose(self) -> None:
        """See :meth:`isthmus.journal.base.Journal.aclose`."""
        await self._writer.aclose()
        await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()

    async def _read(self, query: str, values: Sequence[Any], decode: Callable[[Any], T]) -> list[T]:
        def work() -> list[T]:
            return [decode(found) for found in self._reader.execute(query, values)]

        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, work)
        except (sqlite3.Error, RuntimeError) as error:
            raise JournalError(f"the journal could not be read ({error})") from error


def _encode(event: AgentEvent) -> str:
    return _JSON(event_to_json(event))


def _append(
    connection: sqlite3.Connection, lease: Lease, events: Sequence[AgentEvent], now: float, at_end: str | None = None
) -> Sequence[Delivery]:
    """Add events; ``at_end`` are the questions (JSON) of a task that is let go of with them.

    One statement for the row and one for many events: at each the two threads may have to take turns.
    """
    changes = "seq = seq + ?, updated = ?"
    values: list[Any] = [len(events), now]
    change = next((event for event in reversed(events) if isinstance(event, StateChange)), None)
    if change is not None:
        changes += ", state = ?, error = ?, reason = ?"
        values += [change.state, change.error, change.reason]
    if at_end is not None:
        changes += ", owner = NULL, lease_until = 0, pending = ?"
        values.append(at_end)
    found = connection.execute(
        f"UPDATE tasks SET {changes} WHERE id = ? AND epoch = ? AND owner = ? RETURNING key, seq",  # noqa: S608 - of the constants above
        (*values, lease.task_id, lease.epoch, lease.owner),
    ).fetchone()
    if found is None:
        raise StaleLease(f"task {lease.task_id} was taken over by another process; this one stops working on it")
    key, seq = found
    return _insert(connection, key, seq - len(events), now, events)


def _insert(
    connection: sqlite3.Connection, key: int, seq: int, now: float, events: Iterable[AgentEvent]
) -> Sequence[Delivery]:
    deliveries = [Delivery(number, now, event) for number, event in enumerate(events, seq + 1)]
    for start in range(0, len(deliveries), _ROWS_AT_ONCE):
        values: list[Any] = []
        for item in deliveries[start : start + _ROWS_AT_ONCE]:
            values += (key, item.seq, now, type(item.event).__name__, _encode(item.event))
        rows = ", ".join(["(?, ?, ?, ?, ?)"] * (len(values) // 5))
        connection.execute(f"INSERT INTO events (task, seq, at, type, body) VALUES {rows}", values)  # noqa: S608 - only question marks are put in
    return deliveries


def _inbox(connection: sqlite3.Connection, task_id: str) -> Sequence[AgentEvent]:
    return [event_from_json(json.loads(body)) for (body,) in connection.execute(_INBOX, (task_id,))]


def _remove_from_inbox(connection: sqlite3.Connection, task_id: str, count: int) -> None:
    connection.execute(
        "DELETE FROM inbox WHERE number IN (SELECT number FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?)"
        " ORDER BY number LIMIT ?)",
        (task_id, count),
    )


def _answered(connection: sqlite3.Connection, row: TaskRow) -> set[str]:
    """The calls that were answered since the row was read, or whose answers wait in the inbox."""
    bodies = connection.execute(
        "SELECT body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ? AND type = ?",
        (row.task_id, row.seq, ConfirmationAccepted.__name__),
    )
    events = [*(event_from_json(json.loads(body)) for (body,) in bodies), *_inbox(connection, row.task_id)]
    return {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}


def _row_of(connection: sqlite3.Connection, task_id: str) -> TaskRow:
    return _row(connection.execute(f"SELECT {_COLUMNS} FROM tasks WHERE id = ?", (task_id,)).fetchone())  # noqa: S608 - a constant


def _row(values: Sequence[Any]) -> TaskRow:
    task_id, context, workspace, title, state, seq, owner, epoch, until, created, updated, error, reason, calls = values
    pending = tuple(from_json(ToolCall, call) for call in json.loads(calls))
    ends = (created, updated, error, reason, pending)
    return TaskRow(task_id, context, workspace, title, TaskState(state), seq, owner, epoch, until, *ends)


def _delivery(values: Sequence[Any]) -> Delivery:
    return Delivery(values[0], values[1], event_from_json(json.loads(values[2])))
