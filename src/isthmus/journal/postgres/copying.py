"""Copies into a database, all in one transaction: until it is committed, nothing is there."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from typing_extensions import override

from isthmus.journal.port.base import JournalError
from isthmus.journal.postgres.connection import Database, check_writable, end
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.schema import VERSION, prepare_within
from isthmus.journal.postgres.snapshot import LONG_SESSION, PostgresSnapshot, explained
from isthmus.journal.postgres.statements import storable
from isthmus.journal.sql.copy_target import Target
from isthmus.journal.sql.processes import refuse_holders
from isthmus.journal.sql.tables import TABLES, StoredTable

_NEXT_KEY = "SELECT setval(pg_get_serial_sequence('{0}', '{1}'), max({1})) FROM {0} HAVING max({1}) IS NOT NULL"
"""Statement that puts an identity column's next value after the highest one."""


class PostgresTarget(Target):
    """The tables of a journal, until the transaction of ``connection`` is committed."""

    def __init__(self, name: str, connection: Connection) -> None:
        self.name = name
        self.connection = connection

    @override
    async def write(self, table: StoredTable, rows: Sequence[Sequence[Any]]) -> int:
        columns = list(table.columns)
        values = [tuple(storable(value) if isinstance(value, str) else value for value in row) for row in rows]
        replaced = sum(
            new is not old and new != old
            for stored, row in zip(values, rows, strict=True)
            for new, old in zip(stored, row, strict=True)
        )
        if table.name == "tasks":
            columns.append("lease_until")
            values = [(*row, 0.0) for row in values]
        async with explained(self.name):
            await self.connection.copy_records_to_table(table.name, records=values, columns=columns)
        return replaced

    @override
    async def finish(self, *, started: int) -> None:
        async with explained(self.name):
            await self.connection.execute("UPDATE queue SET started = $1", started)
            for table, column in (("tasks", "key"), ("inbox", "number")):
                await self.connection.execute(_NEXT_KEY.format(table, column))
            await self.connection.execute(f"ANALYZE {', '.join(table.name for table in TABLES)}")


@asynccontextmanager
async def postgres_target(url: str, agent: str | None) -> AsyncGenerator[PostgresTarget]:
    """Make the tables of a journal, for the agent of this name, if it has one; commit at the end.

    Raises:
        JournalError: the database refuses, is lost, or has a journal that is not empty or in use.
    """
    database = Database(url)
    connection: Connection | None = None
    try:
        async with explained(database.name):
            connection = await database.connect()
            await check_writable(connection, database.name)
            for statement in LONG_SESSION:
                await connection.execute(statement)
            await connection.execute("BEGIN")
            # Its lock is held to the end: servers that start now wait for it, and give up if that takes long.
            await prepare_within(connection, database.name, (agent,) if agent is not None else ())
        empty = PostgresSnapshot(database.name, connection, VERSION)
        await _check_empty(empty)
        tables = ", ".join(table.name for table in TABLES)
        async with explained(database.name):
            await connection.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
        await _check_empty(empty)  # now that nobody writes to it
        yield PostgresTarget(database.name, connection)
        async with explained(database.name):
            await connection.execute("COMMIT")
    finally:
        await end(connection)


async def _check_empty(found: PostgresSnapshot) -> None:
    for table in TABLES:
        if await found.read(f"SELECT 1 FROM {table.name} LIMIT 1"):
            raise JournalError(
                f"{found.name} has a journal that is not empty (table {table.name}). Name an empty database:"
                " createdb NAME. Nothing was changed."
            )
    refuse_holders(found.name, await found.processes())
