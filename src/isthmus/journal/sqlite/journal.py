"""The embedded journal: SQLite in WAL mode, one writing connection, reads on a thread of their own.

:mod:`isthmus.journal.port.base` documents each method. What writes come to is decided in
:mod:`isthmus.journal.sql.write_group`, as for each kind of database.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from isthmus.events import AgentEvent
from isthmus.journal.port.replicas import LocalReplicas
from isthmus.journal.port.task_changes import TaskChanges
from isthmus.journal.port.task_rows import Lease, TaskRow
from isthmus.journal.sql.pushes import SqlPushes
from isthmus.journal.sql.rows import CANCELLATION, SQLITE, are_brief, encode_events
from isthmus.journal.sql.sessions import SqlSessions
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sql.writes import SqlWrites
from isthmus.journal.sql.written import Written
from isthmus.journal.sqlite.chats import SqliteChats
from isthmus.journal.sqlite.connections import BUSY_SECONDS, open_writer, same_file
from isthmus.journal.sqlite.inbox import post_to
from isthmus.journal.sqlite.queue import SqliteQueue
from isthmus.journal.sqlite.reads import SqliteReads
from isthmus.journal.sqlite.removal import SqliteRemoval
from isthmus.journal.sqlite.writer import GroupWriter


class SqliteJournal(SqliteReads, SqlWrites):
    """A :class:`~isthmus.journal.port.base.Journal` in one file.

    Call :meth:`open` on the running event loop to make one.
    """

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
        self._writer = GroupWriter(connection, asyncio.get_running_loop(), same_file(path), clock)
        super().__init__(path)
        self.removal = SqliteRemoval(path, self._writer, self.read, clock)
        self._pushes = SqlPushes(self.read, self.write_rows, clock, SQLITE)
        self.pushes = self._pushes
        self.chats = SqliteChats(self._writer, self.read, self.write_rows, clock)
        self.sessions = SqlSessions(self.read, self.write_rows, clock, SQLITE)
        self.changes = TaskChanges()
        self.replicas = LocalReplicas()
        self.files = None
        self.queue = SqliteQueue(self._writer, self.submit_events, self.read, clock, self.changes)

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
    def submit(self, write: TaskWrite) -> Written[Any]:
        return self._writer.submit_write(lambda: write)

    @override
    def submit_events(
        self,
        events: Sequence[AgentEvent],
        write: Callable[[Sequence[str]], TaskWrite],
        *,
        series: Lease | None = None,
        full_sync: bool = False,
    ) -> Written[Any]:
        return self._writer.submit_write(
            lambda: write(encode_events(events)), full_sync=full_sync, series=series, is_brief=are_brief(events)
        )

    @override
    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        return self._writer.submit(lambda connection: post_to(connection, row, events))

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
