"""The driver of PostgreSQL, asyncpg: what of it the journal uses, and which of its errors pass.

It comes with the extra ``postgres``, is imported when a journal is opened, and has no types.
"""

import importlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class Connection(Protocol):
    """The part of an ``asyncpg.Connection`` that the journal uses."""

    async def execute(self, query: str, *values: Any) -> str: ...
    async def fetch(self, query: str, *values: Any) -> Sequence[Sequence[Any]]: ...
    async def fetchrow(self, query: str, *values: Any) -> Any: ...
    async def fetchval(self, query: str, *values: Any) -> Any: ...
    async def add_listener(self, channel: str, callback: Callable[[object, int, str, Any], None]) -> None: ...
    def add_termination_listener(self, callback: Callable[[object], None]) -> None: ...
    async def copy_records_to_table(
        self, table_name: str, *, records: Sequence[Sequence[Any]], columns: Sequence[str]
    ) -> str: ...
    def transaction(self) -> AbstractAsyncContextManager[Any]: ...
    def is_closed(self) -> bool: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def terminate(self) -> None: ...


def postgres_driver() -> Any:
    """Return the module asyncpg; raises ImportError."""
    return importlib.import_module("asyncpg")


def is_lost(error: BaseException) -> bool:
    """Return whether an error means that the database cannot be reached now, and may be reached again."""
    driver = postgres_driver()
    if isinstance(error, OSError | TimeoutError | EOFError | driver.InternalClientError):
        return True
    if isinstance(error, driver.InterfaceError):
        return "closed" in str(error) or "in progress" in str(error) or "lost" in str(error)
    if isinstance(error, driver.PostgresError):
        state = str(getattr(error, "sqlstate", "") or "")
        # Connections (08), shutdowns and starts (57P), too many connections, a session that was idle for too long, and
        # a primary that became a standby: the URL may name another host.
        return state[:2] == "08" or state[:3] == "57P" or state in ("53300", "25P03", "25P04", "25006")
    return False


def is_locked(error: BaseException) -> bool:
    """Return whether a transaction failed because another one held its locks for too long: nothing was written."""
    return getattr(error, "sqlstate", None) == "55P03"


def is_conflict(error: BaseException) -> bool:
    """Return whether a transaction failed because of another one, and can be done again: nothing was written."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01", "55P03")
