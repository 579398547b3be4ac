"""One thread that owns the writing connection and commits in groups.

Whatever is queued in one turn of the event loop, or while a commit runs, goes into the next one, so that many small
writes cost one. A group that holds a write which must be on the disk is committed with ``synchronous=FULL``.
Deliberately not here: what is written.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from typing_extensions import override

from isthmus.errors import IsthmusError
from isthmus.journal.base import JournalError

T = TypeVar("T")
GROUP_LIMIT = 512
"""A commit that holds so many writes takes in no more; bounds how long the first of a group waits."""


class Written(asyncio.Future[T]):
    """What a write comes to. It cannot be cancelled, as what is queued is written: who waits for it hears of its
    own cancellation when that is done."""

    @override
    def cancel(self, msg: Any = None) -> bool:
        del msg
        return False


@dataclass(frozen=True, slots=True)
class _Write(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    future: Written[T]
    full_sync: bool
    series: Hashable


class GroupWriter:
    """Runs functions on a connection, each group in one transaction, and resolves their futures after the commit.

    A function that raises an :class:`IsthmusError` must not have written anything; the others of its group go on.
    ``check`` comes before each group and raises a JournalError when nothing may be written.
    """

    def __init__(
        self, connection: sqlite3.Connection, loop: asyncio.AbstractEventLoop, check: Callable[[], None] | None = None
    ) -> None:
        self._connection = connection
        self._check = check
        self._loop = loop
        self._queue: SimpleQueue[list[_Write[Any]] | None] = SimpleQueue()
        self._gathered: list[_Write[Any]] = []
        self._closed = False
        self._sync = ""
        self._broken: set[Hashable] = set()
        """Series that have lost a write. Touched by the thread alone."""
        self._thread = threading.Thread(target=self._run, name="isthmus-journal", daemon=True)
        self._thread.start()

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, full_sync: bool = False, series: Hashable = None
    ) -> Written[T]:
        """Queue ``work``; the future is done when its group is committed.

        Writes of one ``series`` build on each other: once the disk has refused one of them, the later ones fail too,
        also those that are queued already.

        Raises:
            JournalError: the writer is closed.
        """
        if self._closed:
            raise JournalError("the journal is closed; nothing more can be written")
        future: Written[T] = Written(loop=self._loop)
        if not self._gathered:
            # Waking the thread costs more than most writes: once for all that comes in this turn of the loop.
            self._loop.call_soon(self._hand_over)
        self._gathered.append(_Write(work, future, full_sync, series))
        return future

    def _hand_over(self) -> None:
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    async def aclose(self) -> None:
        """Commit what is queued and end the thread."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        closing = False
        while not closing:
            group: list[_Write[Any]] = []
            writes = self._queue.get()
            while writes is not None:
                group += writes
                if len(group) >= GROUP_LIMIT or self._queue.empty():
                    break
                writes = self._queue.get()
            closing = writes is None
            if group:
                outcomes = self._commit(group)
                self._loop.call_soon_threadsafe(_resolve, group, outcomes)
        self._connection.close()

    def _commit(self, group: "list[_Write[Any]]") -> list[Any]:
        """Return the outcome of each write. Never raises: this thread must live as long as somebody waits for it."""
        try:
            return self._transact(group)
        except Exception as error:
            self._roll_back()
            if len(group) > 1 and not isinstance(error, sqlite3.OperationalError):
                # One of them cannot be done, whatever the disk says: the others are not to suffer from it.
                return [self._commit([write])[0] for write in group]
            self._broken.update(write.series for write in group if write.series is not None)
            failure = JournalError(_explain(error))
            failure.__cause__ = error
            return [failure] * len(group)

    def _transact(self, group: "list[_Write[Any]]") -> list[Any]:
        if self._check is not None:
            self._check()
        connection = self._connection
        sync = "FULL" if any(write.full_sync for write in group) else "NORMAL"
        if sync != self._sync:
            connection.execute(f"PRAGMA synchronous={sync}")
            self._sync = sync
        connection.execute("BEGIN IMMEDIATE")
        outcomes: list[Any] = []
        for write in group:
            try:
                if write.series in self._broken:
                    raise JournalError("an earlier step could not be written, so this one was not either")
                outcomes.append(write.work(connection))
            except IsthmusError as error:
                outcomes.append(error)
        connection.execute("COMMIT")
        return outcomes

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")


def _explain(error: Exception) -> str:
    if isinstance(error, JournalError):
        return str(error)
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return (
            "another program holds the journal's file and did not let go of it in time; nothing of this step was kept,"
            " all before it was. Tasks go on by themselves when it does"
        )
    if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
        return (
            "the disk that holds the journal is full; nothing of this step was kept, all before it was. Free some"
            " space: tasks go on by themselves then"
        )
    return f"the journal could not be written ({error}); nothing of this step was kept"


def _resolve(group: "list[_Write[Any]]", outcomes: list[Any]) -> None:
    for write, outcome in zip(group, outcomes, strict=True):
        if isinstance(outcome, Exception):
            write.future.set_exception(outcome)
        else:
            write.future.set_result(outcome)
