"""A journal in PostgreSQL, for several processes and machines.

:mod:`isthmus.journal.port.base` documents each method. Leases expire by the database's clock. Commits, locks, failover
and backups are those of the database; which writes are refused is decided in :mod:`isthmus.journal.sql.write_group`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent
from isthmus.journal.port.base import JournalError, UnkeepableEvent
from isthmus.journal.port.notices import JournalNotice
from isthmus.journal.port.task_changes import TaskChanges
from isthmus.journal.port.task_rows import Lease, TaskRow
from isthmus.journal.postgres.chats import PostgresChats
from isthmus.journal.postgres.connection import (
    Database,
    check_writable,
    clock_offset,
    end,
    explain_opening,
    limit_locks,
)
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.files import PostgresFiles
from isthmus.journal.postgres.inbox import post_to
from isthmus.journal.postgres.queue import PostgresQueue
from isthmus.journal.postgres.reads import POSTGRES, PostgresReads, numbered
from isthmus.journal.postgres.removal import PostgresRemoval
from isthmus.journal.postgres.replicas import PostgresReplicas
from isthmus.journal.postgres.schema import prepare
from isthmus.journal.postgres.statements import CHANNEL, storable
from isthmus.journal.postgres.writer import PostgresWriter, Preparation
from isthmus.journal.sql.pushes import SqlPushes
from isthmus.journal.sql.rows import encode_events, size_of_prompts
from isthmus.journal.sql.sessions import SqlSessions
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sql.writes import SqlWrites
from isthmus.journal.sql.written import Written
from isthmus.runtime.large_values import LARGE_BYTES
from isthmus.runtime.large_work import off_loop

if TYPE_CHECKING:
    import asyncio


class PostgresJournal(PostgresReads, SqlWrites):
    """A :class:`~isthmus.journal.port.base.Journal` in a database.

    :meth:`open` makes one, on the running event loop.
    """

    def __init__(
        self, database: Database, connection: Connection, offset: float, clock: Callable[[], float] | None = None
    ) -> None:
        super().__init__(database)
        self._replicas = PostgresReplicas(database, self.read)
        self.replicas = self._replicas
        self._writer = PostgresWriter(database, connection, offset, clock, self._replicas.text_of)
        self.removal = PostgresRemoval(self._writer, self.read)
        self._pushes = SqlPushes(self.read, self.write_rows, self._writer.now, POSTGRES)
        self.pushes = self._pushes
        self.chats = PostgresChats(self._writer, self.read, self.write_rows)
        self.files = PostgresFiles(self.read)
        self.sessions = SqlSessions(self.read, self.write_rows, self._writer.now, POSTGRES)
        self.changes = TaskChanges()
        self.queue = PostgresQueue(self._writer, self.submit_events, self.read, self.changes)

    @classmethod
    async def open(
        cls, url: str, clock: Callable[[], float] | None = None, *, agent: Sequence[str] = ()
    ) -> "PostgresJournal":
        """Open the journal in the database ``url``; make its tables in an empty one, upgrade those of older versions.

        ``agent`` is the name of the agent that runs its tasks, then its former names. ``clock`` replaces the
        database's clock, in Unix seconds.

        Raises:
            JournalError: the database cannot be reached, refuses, is newer than this program, or belongs to another
                program or agent; it is unchanged.
        """
        database = Database(url)
        connection: Connection | None = None
        try:
            connection = await database.connect()
            await check_writable(connection, database.name)
            await prepare(connection, database.name, agent)
            offset = await clock_offset(connection)
            await limit_locks(connection)
        except IsthmusError:
            await end(connection)
            raise
        except Exception as error:
            await end(connection)
            raise JournalError(explain_opening(database.name, error)) from error
        return cls(database, connection, offset, clock)

    # --- writing ---

    @override
    def submit(self, write: TaskWrite) -> Written[Any]:
        return self._writer.submit(write)

    @override
    def submit_events(
        self,
        events: Sequence[AgentEvent],
        write: Callable[[Sequence[str]], TaskWrite],
        *,
        series: Lease | None = None,
        full_sync: bool = False,
    ) -> Written[Any]:
        del full_sync  # each commit is on the database's disk when it is done
        if size_of_prompts(events) >= LARGE_BYTES:
            bodies: list[str] = []
            return self._writer.submit(write(bodies), series, _encoding(events, bodies))
        try:
            return self._writer.submit(write(encode_events(events)), series)
        except UnkeepableEvent as error:
            return self._writer.failed(error)

    @override
    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        bodies: list[str] = []

        async def work(connection: Connection, now: float) -> None:
            await post_to(connection, row, events, bodies)
            if (text := self._replicas.text_of(JournalNotice(inboxes=(row.task_id,)))) is not None:
                await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, text)

        return self._writer.run(work, _encoding(events, bodies))

    @override
    async def cancelled(self, leases: Sequence[Lease]) -> Sequence[str]:
        if not leases:
            return ()
        marks = ", ".join(["(?, CAST(? AS bigint))"] * len(leases))
        found = await self.read(
            f"SELECT id FROM tasks WHERE inbox > 0 AND (id, epoch) IN ({marks})"
            " AND EXISTS (SELECT 1 FROM inbox WHERE task = tasks.key AND type = 'StateChange')",
            [value for lease in leases for value in (lease.task_id, lease.epoch)],
            lambda values: str(values[0]),
        )
        return [lease.task_id for lease in leases if lease.task_id in found]

    def write_rows(self, statement: str, rows: Sequence[Sequence[Any]]) -> "asyncio.Future[int]":
        """Queue a statement, once for each row of values; the result is the number of changed rows."""
        stored = [[storable(value) if isinstance(value, str) else value for value in row] for row in rows]

        async def work(connection: Connection, now: float) -> int:
            status = [await connection.execute(numbered(statement), *row) for row in stored]
            return sum(int(one.rpartition(" ")[2]) for one in status)

        return self._writer.run(work)

    @override
    def now(self) -> float:
        return self._writer.now()

    @override
    async def aclose(self) -> None:
        await self._writer.aclose()
        await self._replicas.leave()
        await self.close_readers()


def _encoding(events: Sequence[AgentEvent], bodies: list[str]) -> Preparation:
    """Return the work that adds the bodies of events, for large ones apart from the event loop."""
    size = size_of_prompts(events)

    async def encode() -> None:
        bodies.extend(await off_loop(size, encode_events, events))

    return Preparation(encode, size)
