"""Journals of the chosen kind whose writes fail, or wait, when a test says so."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pytest

from isthmus.journal.port.base import Journal, JournalError
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.sqlite.journal import SqliteJournal


class FullDisk:
    """Makes methods of a journal, such as ``finish``, fail while ``is_full``."""

    def __init__(self, journal: Journal, monkeypatch: pytest.MonkeyPatch, *methods: str) -> None:
        self.is_full = False
        for name in methods:
            monkeypatch.setattr(journal, name, self._failing(getattr(journal, name)))

    def _failing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            if self.is_full:
                raise JournalError("the disk is full")
            return method(*values, **named)

        return call


class HeldWrites:
    """Lets the writes of a journal wait, from the next event that must reach the disk on, until ``go_on`` is set."""

    def __init__(self, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        append: Callable[..., Any] = journal.append

        def call(*values: Any, full_sync: bool = False) -> Any:
            if full_sync:
                self._hold(journal)
            return append(*values, full_sync=full_sync)

        monkeypatch.setattr(journal, "append", call)

    def _hold(self, journal: Journal) -> None:
        # Both have a queue that one at a time is taken from.
        if isinstance(journal, SqliteJournal):
            journal._writer.submit(self._wait)  # pyright: ignore[reportPrivateUsage]
        elif isinstance(journal, PostgresJournal):
            journal._writer.run(self._wait_in_database)  # pyright: ignore[reportPrivateUsage]
        else:
            raise TypeError(f"expected a journal with a queue of writes, got {type(journal).__name__}")

    def _wait(self, connection: sqlite3.Connection | None = None) -> None:
        self.begun.set()
        assert self.go_on.wait(10)

    async def _wait_in_database(self, connection: Connection, now: float) -> None:
        await asyncio.to_thread(self._wait)
