"""Journals of each kind for tests that hold for all of them."""

import atexit
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from isthmus.journal.port.base import Journal
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sqlite.connections import BUSY_SECONDS
from isthmus.journal.sqlite.journal import SqliteJournal

if TYPE_CHECKING:
    from support.postgres import Postgres

KINDS = ("sqlite", "postgres")
CHOSEN = os.environ.get("ISTHMUS_TEST_JOURNAL", "sqlite")
"""Kind of the journals of :func:`journal_at`. (It is read before the first test hides the environment.)"""
_URLS: dict[Path, str] = {}


class JournalPlace(Protocol):
    """The place of one journal, at first empty."""

    async def open(self, clock: Callable[[], float] | None = None) -> Journal:
        """Open the journal; ``clock`` replaces its own, in Unix seconds."""
        ...


class SqlitePlace:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def open(self, clock: Callable[[], float] | None = None) -> Journal:
        """Open the journal in the file."""
        return await SqliteJournal.open(self.path, clock or time.time)


class PostgresPlace:
    """A database."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self, clock: Callable[[], float] | None = None) -> Journal:
        """Open the journal in the database."""
        return await PostgresJournal.open(self.url, clock)


async def journal_at(path: Path, *, busy_seconds: float = BUSY_SECONDS, agent: Sequence[str] = ()) -> Journal:
    """Open the journal at a path: the file, or with ISTHMUS_TEST_JOURNAL=postgres a database that stands for it."""
    if (url := journal_url(path)) is None:
        return await SqliteJournal.open(path, busy_seconds=busy_seconds, agent=agent)
    return await PostgresJournal.open(url, agent=agent)


def journal_url(path: Path) -> str | None:
    """Return the URL of the database that stands for the file; None if it is the file itself."""
    if CHOSEN == "sqlite":
        return None
    if path not in _URLS:
        _URLS[path] = _server().database()
    return _URLS[path]


@cache
def _server() -> "Postgres":
    """Return a server for all tests of this process, which ends with it."""
    from support.postgres import postgres  # here: programs of tests have no path to what it uses

    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(postgres())
