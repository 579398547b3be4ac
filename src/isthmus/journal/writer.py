"""A thread that owns the writing connection and commits writes in groups.

Writes that are queued in one turn of the event loop, or while a commit runs, share the next commit, so that many small
writes cost one. A group with a write that must be on the disk is committed with ``synchronous=FULL``.
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
"""Size at which a group takes in no more writes; bounds how long its first write waits."""


class Written(asyncio.Future[T]):
    """The result of a write. It cannot be cancelled: a cancelled waiter is notified once the write has completed."""

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

    A function that raises an :class:`IsthmusError` must not have written anything; the rest of its group is unaffected.
    ``check`` is called before each group and raises a JournalError when nothing may be written.
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
        """Series that have lost a write. Only the thread uses it."""
        self._thread = threading.Thread(target=self._run, name="isthmus-journal", daemon=True)
        self._thread.start()

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, full_sync: bool = False, series: Hashable = None
    ) -> Written[T]:
        """Queue ``work``; the future is done when its group is committed.

        Writes of one ``series`` build on each other: once the disk has refused one, the later ones fail too, including
        those that are already queued.

        Raises:
            JournalError: the writer is closed.
        """
        if self._closed:
            raise JournalError("the journal is closed; nothing more can be written")
        future: Written[T] = Written(loop=self._loop)
        if not self._gathered:
            # Waking the thread costs more than most writes, so wake it once per turn of the loop.
            self._loop.call_soon(self._hand_over)
        self._gathered.append(_Write(work, future, full_sync, series))
        return future

    def _hand_over(self) -> None:
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    async def aclose(self) -> None:
        """Commit the queued writes and end the thread."""
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
        """Return the outcome of each write. Never raises: callers wait for this thread, so it must not die."""
        try:
            return self._transact(group)
        except Exception as error:
            self._roll_back()
            if len(group) > 1 and not isinstance(error, sqlite3.OperationalError):
                # A single write is at fault, not the disk: the others must not fail with it.
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
                    raise JournalError("an earlier write of this task failed, so this one was not made")
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
            "another program holds the journal's file and did not unlock it in time; this step was not stored,"
            " everything before it was. Tasks continue by themselves when it is unlocked"
        )
    if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
        return (
            "the disk that holds the journal is full; this step was not stored, everything before it was. Free"
            " some space: tasks then continue by themselves"
        )
    return f"the journal could not be written ({error}); this step was not stored"


def _resolve(group: "list[_Write[Any]]", outcomes: list[Any]) -> None:
    for write, outcome in zip(group, outcomes, strict=True):
        if isinstance(outcome, Exception):
            write.future.set_exception(outcome)
        else:
            write.future.set_result(outcome)
