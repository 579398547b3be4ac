"""Connections behind a pool that lends a database session for one transaction at a time, such as PgBouncer's.

Nothing may be left in a session there: each statement runs in a transaction of its own, nothing is prepared for later,
and notices and locks of a session do not exist.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from typing_extensions import override

from isthmus.journal.postgres.driver import Connection

_IN_TRANSACTION = "SET LOCAL idle_in_transaction_session_timeout = '2s'; SET LOCAL lock_timeout = '15s'"


class PooledConnection(Connection):
    """A connection, made without a cache of statements, as one of :mod:`isthmus.journal.postgres.connection`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_in_transaction = False
        self.in_transactions = ""
        """Statements that begin each transaction of several statements, as those that change its settings."""

    @override
    async def execute(self, query: str, *values: Any) -> str:
        """Run a statement; return its status."""
        async with self._held():
            return await self._connection.execute(query, *values)

    @override
    async def fetch(self, query: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Return the rows of a query."""
        async with self._held():
            return await self._connection.fetch(query, *values)

    @override
    async def fetchrow(self, query: str, *values: Any) -> Any:
        """Return the first row of a query."""
        async with self._held():
            return await self._connection.fetchrow(query, *values)

    @override
    async def fetchval(self, query: str, *values: Any) -> Any:
        """Return the first value of a query."""
        async with self._held():
            return await self._connection.fetchval(query, *values)

    @override
    async def copy_records_to_table(
        self, table_name: str, *, records: Sequence[Sequence[Any]], columns: Sequence[str]
    ) -> str:
        """Add rows to a table; return the status."""
        async with self._held():
            return await self._connection.copy_records_to_table(table_name, records=records, columns=columns)

    @override
    async def add_listener(self, channel: str, callback: Callable[[object, int, str, Any], None]) -> None:
        """Do nothing: notices do not arrive."""

    @override
    def add_termination_listener(self, callback: Callable[[object], None]) -> None:
        """Call a function when the connection has ended."""
        self._connection.add_termination_listener(callback)

    @override
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Return a context in which all statements are one transaction."""
        return self._held(self.in_transactions)

    @override
    def is_closed(self) -> bool:
        """Return whether the connection has ended."""
        return self._connection.is_closed()

    @override
    async def close(self, *, timeout: float | None = None) -> None:
        """Close the connection."""
        await self._connection.close(timeout=timeout)

    @override
    def terminate(self) -> None:
        """Close the connection at once."""
        self._connection.terminate()

    @asynccontextmanager
    async def _held(self, first: str = "") -> AsyncGenerator[None]:
        """Hold a session of the database, unless one is held; begin with the statements ``first``."""
        if self._is_in_transaction:
            yield
            return
        async with self._connection.transaction():
            self._is_in_transaction = True
            try:
                await self._connection.execute(f"{_IN_TRANSACTION}; {first}" if first else _IN_TRANSACTION)
                yield
            finally:
                self._is_in_transaction = False
