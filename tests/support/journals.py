"""Journals of each kind for tests that hold for all of them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from isthmus.journal.base import Journal
from isthmus.journal.postgres import PostgresJournal
from isthmus.journal.sqlite import SqliteJournal

KINDS = ("sqlite", "postgres")


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
        """Open the journal."""
        return await SqliteJournal.open(self.path, clock or time.time)


class PostgresPlace:
    """A database."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self, clock: Callable[[], float] | None = None) -> Journal:
        """Open the journal."""
        return await PostgresJournal.open(self.url, clock)
