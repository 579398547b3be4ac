"""The embedded journal: SQLite in WAL mode, one writer thread, reads on a thread of their own.

What each statement is for is said in :mod:`isthmus.journal.base`; this module is only the SQL.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from isthmus.client import Delivery, LimitReached, TaskQuery, UserLimits
from isthmus.codec import to_json
from isthmus.development_tool import ToolCall
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    Command,
    ConfirmationAccepted,
    ModelReply,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    event_from_json,
)
from isthmus.journal.base import (
    INBOX_CHARACTERS,
    INBOX_MESSAGES,
    NO_LIMITS,
    Finished,
    JournalError,
    Lease,
    NewTask,
    StaleLease,
    Taken,
    TaskRow,
)
from isthmus.journal.schema import open_reader, open_writer, same_file
from isthmus.journal.sqlite_pushes import SqlitePushes
from isthmus.journal.sqlite_removal import SqliteRemoval
from isthmus.journal.statements import (
    BEGUN_BY,
    BY_MESSAGE,
    COLUMNS,
    DELETED,
    INBOX,
    INBOX_BY_MESSAGE,
    JSON,
    after_condition,
    answered_calls,
    append_events,
    check_limits,
    check_new_message,
    check_not_posted,
    delivery_of,
    encode_event,
    inbox_of,
    insert_events,
    remove_from_inbox,
    row_from,
    row_of,
    task_conditions,
)
from isthmus.journal.writer import GroupWriter

T = TypeVar("T")

_LAST = 2**63 - 1
"""More than any event's number."""
_NOT_IN_SESSION = tuple(kind.__name__ for kind in (TextContent, Thought, RetryNotice))
_MESSAGES = tuple(kind.__name__ for kind in (Prompt, Command, ModelReply, AgentMessage))


class SqliteJournal:
    """A :class:`~isthmus.journal.base.Journal` in one file. Made by :meth:`open`, on the running event loop."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time, *, agent: Sequence[str] = ()) -> None:
        self._clock = clock
        connection = open_writer(path, agent)
        self._writer = GroupWriter(connection, asyncio.get_running_loop(), same_file(path))
        self._reader = open_reader(path)
        self._reading = ThreadPoolExecutor(max_workers=1, thread_name_prefix="isthmus-journal-read")
        self.removal = SqliteRemoval(path, self._writer, self._read)
        self.pushes = SqlitePushes(self._writer, self._read, clock)

    @classmethod
    async def open(
        cls, path: Path, clock: Callable[[], float] = time.time, *, agent: Sequence[str] = ()
    ) -> "SqliteJournal":
        """Open the file, or make it. ``agent`` is the name of the agent that runs its tasks, then its former names.

        Raises:
            JournalError: it is unreadable, locked, newer than this program, of another program, or of another agent; it
                is left as it is.
        """
        return cls(path, clock, agent=agent)

    # --- writing ---

    def create(
        self,
        task: NewTask,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[Taken]:
        """See :meth:`isthmus.journal.base.Journal.create`."""
        now = self._clock()
        until = now + lease_seconds
        made = (task.task_id, task.context_id, task.workspace, task.title)

        def work(connection: sqlite3.Connection) -> Taken:
            check_new_message(connection, task)
            check_limits(connection, task.user, limits)
            bodies = [encode_event(event) for event in events]
            try:
                cursor = connection.execute(
                    "INSERT INTO tasks (id, context, workspace, title, state, seq, owner, epoch, lease_until, created,"
                    " updated, user, message, digest) VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)",
                    (
                        *(*made, TaskState.SUBMITTED, len(events), owner, until, now, now, task.user),
                        *(task.message_id, task.digest),
                    ),
                )
            except sqlite3.IntegrityError as error:
                raise JournalError(f"task {task.task_id} exists already; task ids are made once") from error
            deliveries = insert_events(connection, cursor.lastrowid or 0, 0, now, events, bodies)
            row = TaskRow(*made, TaskState.SUBMITTED, len(events), owner, 1, until, now, now, user=task.user)
            return Taken(Lease(task.task_id, owner, 1), row, deliveries)

        return self._writer.submit(work)

    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        """See :meth:`isthmus.journal.base.Journal.append`."""
        now = self._clock()
        written = self._writer.submit(
            lambda connection: append_events(connection, lease, events, now), full_sync=full_sync, series=lease
        )
        self.pushes.watch(events, written)
        return written

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
        questions = JSON([to_json(call) for call in pending])

        def work(connection: sqlite3.Connection) -> Finished:
            inbox = inbox_of(connection, lease.task_id)
            if inbox and not discard_inbox:
                return Finished((), inbox)
            deliveries = append_events(connection, lease, events, now, at_end=questions)
            if inbox:
                remove_from_inbox(connection, lease.task_id, len(inbox))
            return Finished(deliveries)

        written = self._writer.submit(work, series=lease)
        self.pushes.watch(events, written)
        return written

    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        """See :meth:`isthmus.journal.base.Journal.take`."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Sequence[Delivery]:
            deliveries = append_events(connection, lease, events, now)
            remove_from_inbox(connection, lease.task_id, count)
            return deliveries

        return self._writer.submit(work, series=lease)

    def claim(
        self,
        row: TaskRow,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[Taken | None]:
        """See :meth:`isthmus.journal.base.Journal.claim`."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Taken | None:
            check_limits(connection, row.user, limits, row.task_id)
            for event in events:
                encode_event(event)  # Before anything is written.
            changed = connection.execute(
                "UPDATE tasks SET state = ?, owner = ?, epoch = epoch + 1, lease_until = ?, pending = '[]',"
                " error = NULL, reason = NULL WHERE id = ? AND owner IS NULL AND epoch = ? RETURNING epoch",
                (TaskState.WORKING, owner, now + lease_seconds, row.task_id, row.epoch),
            ).fetchone()
            if changed is None:
                return None
            lease = Lease(row.task_id, owner, changed[0])
            deliveries = append_events(connection, lease, events, now)
            return Taken(lease, row_of(connection, row.task_id), deliveries)

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
            return Taken(Lease(row.task_id, owner, changed[0]), row_of(connection, row.task_id), ())

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
        bodies = [encode_event(event) for event in events]
        is_counted = any(isinstance(event, Prompt) for event in events)
        calls = {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}

        def work(connection: sqlite3.Connection) -> None:
            found = connection.execute(
                "SELECT key FROM tasks WHERE id = ? AND epoch = ? AND owner IS NOT NULL", (row.task_id, row.epoch)
            ).fetchone()
            if found is None:
                raise StaleLease(f"task {row.task_id} is not running as it was; nobody would read the message")
            if calls and not calls.isdisjoint(answered_calls(connection, row)):
                raise StaleLease(f"a tool call of task {row.task_id} has got another answer meanwhile")
            if is_counted:
                check_not_posted(connection, row, events)
                count, size = connection.execute(
                    "SELECT count(*), ifnull(sum(length(body)), 0) FROM inbox WHERE task = ?", found
                ).fetchone()
                if count + len(bodies) > INBOX_MESSAGES or size + sum(map(len, bodies)) > INBOX_CHARACTERS:
                    raise LimitReached(
                        f"{count} messages ({size} characters) wait until task {row.task_id} takes them up; at most"
                        f" {INBOX_MESSAGES} messages and {INBOX_CHARACTERS} characters may. Send this one again later."
                    )
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
        rows = await self._read(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,), row_from)
        return rows[0] if rows else None

    async def find(self, beginning: str, limit: int) -> Sequence[TaskRow]:
        """See :meth:`isthmus.journal.base.Journal.find`."""
        return await self._read(
            f"SELECT {COLUMNS} FROM tasks WHERE substr(id, 1, ?) = ? AND state <> ? ORDER BY key LIMIT ?",
            (len(beginning), beginning, DELETED, limit),
            row_from,
        )

    async def tasks(self, limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> Sequence[TaskRow]:
        """See :meth:`isthmus.journal.base.Journal.tasks`."""
        wanted = states or tuple(TaskState)
        marks = ", ".join("?" * len(wanted))
        # The plus keeps an index out of it: most tasks fit, and by their changes the first are found at once.
        whose, values = ("", ()) if user is None else (f"{'' if states else '+'}user = ? AND ", (user,))
        return await self._read(
            f"SELECT {COLUMNS} FROM tasks WHERE {whose}{'' if states else '+'}state IN ({marks})"
            " ORDER BY updated DESC, key DESC LIMIT ?",
            (*values, *wanted, limit),
            row_from,
        )

    async def list_tasks(self, query: TaskQuery, user: str, roots: Sequence[str] = ()) -> tuple[Sequence[TaskRow], int]:
        """See :meth:`isthmus.journal.base.Journal.list_tasks`."""
        fits, values = task_conditions(query, user, roots)
        after, place = after_condition(query)
        found = await self._read(
            f"SELECT {COLUMNS} FROM tasks WHERE {fits}{after} ORDER BY updated DESC, id LIMIT ?",
            (*values, *place, query.limit),
            row_from,
        )
        (total,) = await self._read(f"SELECT count(*) FROM tasks WHERE {fits}", values, lambda row: int(row[0]))
        return found, total

    async def inbox(self, task_id: str) -> Sequence[AgentEvent]:
        """See :meth:`isthmus.journal.base.Journal.inbox`."""
        return await self._read(INBOX, (task_id,), lambda values: event_from_json(json.loads(values[0])))

    async def of_message(self, task_id: str, message_id: str) -> Sequence[Delivery]:
        """See :meth:`isthmus.journal.base.Journal.of_message`."""
        # In this order: an event leaves the inbox when it is among the events.
        waiting = await self._read(INBOX_BY_MESSAGE, (task_id, JSON(message_id)), delivery_of)
        taken = await self._read(BY_MESSAGE, (task_id, 0, message_id), delivery_of)
        return [*taken, *waiting]

    async def workspace_of(self, context_id: str, user: str = "") -> str | None:
        """See :meth:`isthmus.journal.base.Journal.workspace_of`."""
        query = "SELECT workspace FROM tasks WHERE context = ? AND user = ? ORDER BY key LIMIT 1"
        found = await self._read(query, (context_id, user), lambda values: str(values[0]))
        return found[0] if found else None

    async def begun_by(self, user: str, message_id: str) -> Sequence[tuple[str, str]]:
        """See :meth:`isthmus.journal.base.Journal.begun_by`."""
        return await self._read(
            BEGUN_BY, (message_id, user, DELETED, TaskState.CANCELED), lambda values: (values[0], values[1])
        )

    def now(self) -> float:
        """See :meth:`isthmus.journal.base.Journal.now`."""
        return self._clock()

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        """See :meth:`isthmus.journal.base.Journal.events`."""
        return await self._read(
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ?"
            " ORDER BY seq LIMIT ?",
            (task_id, after, limit),
            delivery_of,
        )

    async def messages(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Delivery]:
        """See :meth:`isthmus.journal.base.Journal.messages`."""
        newest_first = await self._read(
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?)"
            " AND type IN (?, ?, ?, ?) AND seq < ? ORDER BY seq DESC LIMIT ?",
            (task_id, *_MESSAGES, _LAST if before is None else before, limit),
            delivery_of,
        )
        return newest_first[::-1]

    async def artifacts(self, task_id: str) -> Sequence[Delivery]:
        """See :meth:`isthmus.journal.base.Journal.artifacts`."""
        return await self._read(
            "SELECT seq, at, body FROM events INDEXED BY artifact_events"
            " WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type = 'ArtifactUpdate' ORDER BY seq",
            (task_id,),
            delivery_of,
        )

    async def session(self, context_id: str, user: str = "") -> Sequence[tuple[str, Delivery]]:
        """See :meth:`isthmus.journal.base.Journal.session`."""
        return await self._read(
            "SELECT events.seq, events.at, events.body, tasks.id FROM tasks JOIN events ON events.task = tasks.key"
            " WHERE tasks.context = ? AND tasks.user = ? AND events.type NOT IN (?, ?, ?)"
            " ORDER BY tasks.key, events.seq",
            (context_id, user, *_NOT_IN_SESSION),
            lambda values: (values[3], delivery_of(values)),
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
