"""The embedded journal: SQLite in WAL mode, one writing connection, reads on a thread of their own.

:mod:`isthmus.journal.base` documents each method; this module is only the SQL that writes.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from isthmus.client import NO_LIMITS, Delivery, UserLimits
from isthmus.development_tool import ToolCall
from isthmus.encoding.codec import to_json
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
)
from isthmus.journal.base import StaleLease
from isthmus.journal.replicas import LocalReplicas
from isthmus.journal.rows import CANCELLATION, JSON, SQLITE, are_brief, check_inbox, encode_events
from isthmus.journal.schema import BUSY_SECONDS, open_writer, same_file
from isthmus.journal.sql_pushes import SqlPushes
from isthmus.journal.sqlite_chats import SqliteChats
from isthmus.journal.sqlite_queue import SqliteQueue
from isthmus.journal.sqlite_reads import SqliteReads
from isthmus.journal.sqlite_removal import SqliteRemoval
from isthmus.journal.statements import (
    answered_calls,
    append_events,
    check_limits,
    check_new_message,
    check_not_posted,
    claim_task,
    inbox_of,
    insert_task,
    remove_from_inbox,
    row_of,
)
from isthmus.journal.task_changes import TaskChanges
from isthmus.journal.task_rows import ClaimedTask, Finished, Lease, NewTask, TaskRow
from isthmus.journal.writer import GroupWriter


class SqliteJournal(SqliteReads):
    """A :class:`~isthmus.journal.base.Journal` in one file. Call :meth:`open` on the running event loop to make one."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.time,
        *,
        agent: Sequence[str] = (),
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._clock = clock
        connection = open_writer(path, agent, busy_seconds)
        self._writer = GroupWriter(connection, asyncio.get_running_loop(), same_file(path))
        super().__init__(path)
        self.removal = SqliteRemoval(path, self._writer, self.read, clock)
        self._pushes = SqlPushes(self.read, self.write_rows, clock, SQLITE)
        self.pushes = self._pushes
        self.chats = SqliteChats(self._writer, self.read, self.write_rows, clock)
        self.changes = TaskChanges()
        self.replicas = LocalReplicas()
        self.files = None
        self.queue = SqliteQueue(self._writer, self.read, clock, self.changes)

    @classmethod
    async def open(
        cls,
        path: Path,
        clock: Callable[[], float] = time.time,
        *,
        agent: Sequence[str] = (),
        busy_seconds: float = BUSY_SECONDS,
    ) -> "SqliteJournal":
        """Open or create the file. ``agent`` is the name of the agent that runs its tasks, then its former names.

        ``busy_seconds`` is the time in seconds that a write waits for another program that has locked the file.

        Raises:
                JournalError: the file is unreadable, locked, newer than this program, or belongs to another program or
                    agent; it is left unchanged.
        """
        return cls(path, clock, agent=agent, busy_seconds=busy_seconds)

    # --- writing ---

    @override
    def create(
        self,
        task: NewTask,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[ClaimedTask]:
        now = self._clock()

        def work(connection: sqlite3.Connection) -> ClaimedTask:
            check_new_message(connection, task)
            check_limits(connection, task.user, limits)
            row, deliveries = insert_task(connection, task, events, owner, now + lease_seconds, now)
            return ClaimedTask(Lease(task.task_id, owner, 1), row, deliveries)

        written = self._writer.submit(work, is_brief=are_brief(events))
        self.changes.follow(task.task_id, written)
        return written

    @override
    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        now = self._clock()
        written = self._writer.submit(
            lambda connection: append_events(connection, lease, events, now),
            full_sync=full_sync,
            series=lease,
            is_brief=are_brief(events),
        )
        self._pushes.watch(events, written)
        self.changes.follow(lease.task_id, written, events)
        return written

    @override
    def finish(
        self,
        lease: Lease,
        events: Sequence[AgentEvent],
        pending: Sequence[ToolCall],
        *,
        discard_inbox: bool = False,
    ) -> Awaitable[Finished]:
        now = self._clock()
        questions = JSON([to_json(call) for call in pending]) if pending else "[]"

        def work(connection: sqlite3.Connection) -> Finished:
            inbox = inbox_of(connection, lease.task_id)
            if inbox and not discard_inbox:
                return Finished((), inbox)
            deliveries = append_events(connection, lease, events, now, at_end=questions)
            if inbox:
                remove_from_inbox(connection, lease.task_id, len(inbox))
            return Finished(deliveries)

        written = self._writer.submit(work, series=lease, is_brief=are_brief(events))
        self._pushes.watch(events, written)
        self.changes.follow(lease.task_id, written)
        return written

    @override
    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Sequence[Delivery]:
            deliveries = append_events(connection, lease, events, now)
            remove_from_inbox(connection, lease.task_id, count)
            return deliveries

        return self._writer.submit(work, series=lease, is_brief=are_brief(events))

    @override
    def claim(
        self,
        row: TaskRow,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[ClaimedTask | None]:
        now = self._clock()

        def work(connection: sqlite3.Connection) -> ClaimedTask | None:
            check_limits(connection, row.user, limits, row.task_id)
            if (found := claim_task(connection, row, events, owner, now + lease_seconds, now)) is None:
                return None
            changed, deliveries = found
            return ClaimedTask(Lease(row.task_id, owner, changed.epoch), changed, deliveries)

        written = self._writer.submit(work, is_brief=are_brief(events))
        self.changes.follow(row.task_id, written)
        return written

    @override
    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> Awaitable[ClaimedTask | None]:
        now = self._clock()

        def work(connection: sqlite3.Connection) -> ClaimedTask | None:
            changed = connection.execute(
                "UPDATE tasks SET owner = ?, epoch = epoch + 1, lease_until = ?, tag = 0, reserved = '',"
                " running_limit = NULL"
                " WHERE id = ? AND epoch = ? AND lease_until = ? RETURNING epoch",
                (owner, now + lease_seconds, row.task_id, row.epoch, row.lease_until),
            ).fetchone()
            if changed is None:
                return None
            lease = Lease(row.task_id, owner, changed[0])
            return ClaimedTask(lease, row_of(connection, row.task_id), (), former=row.lease)

        return self._writer.submit(work)

    @override
    def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Awaitable[Sequence[Lease]]:
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

    @override
    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE tasks SET owner = NULL, lease_until = 0 WHERE id = ? AND epoch = ? AND owner = ?",
                [(lease.task_id, lease.epoch, lease.owner) for lease in leases],
            )

        return self._writer.submit(work)

    @override
    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        is_counted = any(isinstance(event, Prompt) for event in events)
        calls = {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}

        def work(connection: sqlite3.Connection) -> None:
            bodies = encode_events(events)
            found = connection.execute(
                "SELECT key FROM tasks WHERE id = ? AND epoch = ? AND (owner IS NOT NULL OR tag > 0)",
                (row.task_id, row.epoch),
            ).fetchone()
            if found is None:
                raise StaleLease(f"task {row.task_id} is not running or has a new owner; the message was not sent")
            if calls and not calls.isdisjoint(answered_calls(connection, row)):
                raise StaleLease(f"a tool call of task {row.task_id} has been answered in the meantime")
            if is_counted:
                check_not_posted(connection, row, events)
                count, size = connection.execute(
                    "SELECT count(*), ifnull(sum(length(body)), 0) FROM inbox WHERE task = ?", found
                ).fetchone()
                check_inbox(row, count, size, bodies)
            connection.executemany(
                "INSERT INTO inbox (task, body) VALUES (?, ?)", [(found[0], body) for body in bodies]
            )

        return self._writer.submit(work)

    @override
    def cancelled(self, leases: Sequence[Lease]) -> Awaitable[Sequence[str]]:
        def work(connection: sqlite3.Connection) -> Sequence[str]:
            waits = (connection.execute(CANCELLATION, (lease.task_id, lease.epoch)).fetchone() for lease in leases)
            return [lease.task_id for lease, found in zip(leases, waits, strict=True) if found]

        return self._writer.submit(work)

    def write_rows(self, statement: str, rows: Sequence[Sequence[Any]]) -> "asyncio.Future[int]":
        """Queue a statement, once for each row of values; the result is the number of changed rows."""
        return self._writer.submit(lambda connection: connection.executemany(statement, rows).rowcount)

    @override
    def now(self) -> float:
        return self._clock()

    @override
    async def aclose(self) -> None:
        await self._writer.aclose()
        await self.close_reader()
