"""A journal in PostgreSQL as it is at one moment: :class:`~isthmus.journal.sql.snapshot.Snapshot` on a database."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from typing_extensions import override

from isthmus.errors import IsthmusError
from isthmus.journal.port.base import JournalError
from isthmus.journal.postgres.connection import Database, end, explain_opening, without_secrets
from isthmus.journal.postgres.driver import Connection, is_conflict
from isthmus.journal.postgres.schema import VERSION, version_of
from isthmus.journal.sql.processes import Process, owner_process, refuse_holders
from isthmus.journal.sql.snapshot import BATCH_CHARACTERS, BATCH_ROWS, Snapshot, newer
from isthmus.journal.sql.tables import TABLES, StoredTable, quoted

LONG_SESSION = ("SET idle_in_transaction_session_timeout = 0", "SET lock_timeout = '5s'")
"""Settings of a session whose transaction may wait for the other side of a copy."""
_REPLICA_LOCK = (
    "SELECT owner, labels, slots, begun, EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND mode = 'ExclusiveLock' AND objsubid = 1 AND classid::bigint = ((lock >> 32) & 4294967295)"
    " AND objid::bigint = (lock & 4294967295)"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) FROM replicas ORDER BY begun"
)
"""Query for the replicas, and whether each holds its lock. It takes no lock, unlike pg_try_advisory_lock."""
_LEASES = (
    "SELECT owner, count(*), max(lease_until) > extract(epoch FROM clock_timestamp()) FROM tasks"
    " WHERE owner IS NOT NULL GROUP BY owner ORDER BY owner"
)
_TYPES = {"task": "bigint", "seq": "bigint", "key": "bigint", "number": "bigint"}


class PostgresSnapshot(Snapshot):
    """A journal in a database, seen by one transaction of ``connection``."""

    def __init__(self, name: str, connection: Connection, version: int) -> None:
        self.connection = connection
        self.name = name
        self.version = version
        self.newest = VERSION

    @override
    async def read(self, query: str) -> Sequence[Sequence[Any]]:
        async with explained(self.name):
            return await self.connection.fetch(query)

    @override
    async def rows(self, table: StoredTable) -> AsyncIterator[Sequence[Sequence[Any]]]:
        key = quoted(table.key)
        order = f" ORDER BY {key} LIMIT "
        after: Sequence[Any] = ()
        while True:
            marks = ", ".join(f"${number}::{_TYPES.get(name, 'text')}" for number, name in enumerate(table.key, 1))
            rest = f" FROM {table.name}" + (f" WHERE ({key}) > ({marks})" if after else "") + order
            async with explained(self.name):
                count = BATCH_ROWS
                if table.long:
                    # The lengths first: a thousand rows may be larger than the memory.
                    lengths = await self.connection.fetch(f"SELECT octet_length({table.long}){rest}{count}", *after)
                    count = _fitting([int(row[0]) for row in lengths])
                batch = await self.connection.fetch(f"SELECT {quoted(table.columns)}{rest}{count}", *after)
            if not batch:
                return
            after = table.key_of(batch[-1])
            yield [tuple(row) for row in batch]

    @override
    async def has(self, table: str) -> bool:
        return (await self.read(f"SELECT to_regclass('{table}') IS NOT NULL"))[0][0]

    @override
    async def agent(self) -> str | None:
        found = await self.read("SELECT agent FROM journal")
        return found[0][0] if found else None

    @override
    async def size(self) -> int:
        names = ", ".join(f"('{table.name}')" for table in TABLES)
        found = await self.read(
            f"SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint FROM (VALUES {names}) AS t(name)"
        )
        return int(found[0][0] or 0)

    @override
    async def processes(self) -> Sequence[Process]:
        leases = {str(owner): (int(count), bool(held)) for owner, count, held in await self.read(_LEASES)}
        found: list[Process] = []
        replicas = await self.read(_REPLICA_LOCK) if self.version > 1 else ()
        for owner, labels, slots, begun, has_lock in replicas:
            count, _ = leases.pop(owner, (0, False))
            names = tuple(str(labels).split())
            found.append(owner_process(owner, count, bool(has_lock), labels=names, slots=slots, begun=begun))
        return [
            *found,
            *(owner_process(name, count, None if held else False) for name, (count, held) in leases.items()),
        ]

    @override
    async def damage(self) -> Sequence[str]:
        problems: list[str] = []
        for table, column in (("tasks", "key"), ("inbox", "number")):
            found = await self.read(
                f"SELECT max({column}), pg_sequence_last_value(pg_get_serial_sequence('{table}', '{column}')::regclass)"
                f" FROM {table}"
            )
            highest, last = found[0]
            if highest is not None and (last is None or last < highest):
                problems.append(
                    f"the next {column} of table {table} would be {(last or 0) + 1}, and {highest} is in use: set its"
                    " sequence, SELECT setval(...)"
                )
        return problems


def _fitting(lengths: Sequence[int]) -> int:
    """Return how many of the first rows fit a batch, at least one."""
    size = 0
    for count, length in enumerate(lengths):
        size += length
        if size > BATCH_CHARACTERS:
            return max(count, 1)
    return max(len(lengths), 1)


@asynccontextmanager
async def postgres_snapshot(url: str, *, alone: bool = False) -> AsyncGenerator[PostgresSnapshot]:
    """Open the journal in a database; see :func:`isthmus.journal.opening.snapshot_of`."""
    database = Database(url)
    connection: Connection | None = None
    try:
        async with explained(database.name):
            connection = await database.connect()
            for statement in LONG_SESSION:
                await connection.execute(statement)
            await connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ{'' if alone else ' READ ONLY'}")
            version = await version_of(connection, database.name)
        if version == 0:
            raise JournalError(f"there is no journal in {database.name}. Name the database of one.")
        if version > VERSION:
            raise newer(database.name, version, VERSION)
        snapshot = PostgresSnapshot(database.name, connection, version)
        if alone:
            await _hold(snapshot, connection)
        yield snapshot
    finally:
        await end(connection)


async def _hold(snapshot: PostgresSnapshot, connection: Connection) -> None:
    """Keep others from writing until the connection is closed, and see that no process works with the journal."""
    refuse_holders(snapshot.name, await snapshot.processes())
    async with explained(snapshot.name):
        # What is written by now is to be seen: the view of a transaction is that of its first query after the lock.
        await connection.execute("ROLLBACK")
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await connection.execute(f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN SHARE MODE")
    refuse_holders(snapshot.name, await snapshot.processes())


@asynccontextmanager
async def explained(name: str) -> AsyncGenerator[None]:
    """Raise a JournalError, with no password in its text, for what a database or its driver raises."""
    try:
        yield
    except IsthmusError:
        raise
    except Exception as error:
        if is_conflict(error):
            text = f"{name} is being written to ({error}): nothing was changed. Stop what works with it, or try again."
            raise JournalError(without_secrets(text)) from error
        raise JournalError(explain_opening(name, error)) from error
