"""Commits writes in groups, on the event loop if that is quick, otherwise on a thread.

Writes that are queued in one turn of the event loop, or while a commit runs, share the next commit, so that many small
writes cost one. A group with a write that must be on disk is committed with ``synchronous=FULL``.

Brief writes are committed on the event loop, since waking the thread and the loop again costs more than the commit.
The loop never waits there: only the thread synchronises the disk, empties SQLite's log and waits for another program's
lock, and after a slow commit all writes go to the thread for a while.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from isthmus.errors import IsthmusError
from isthmus.files.databases import roll_back
from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sql.write_group import after_failure
from isthmus.journal.sql.written import Written
from isthmus.journal.sqlite.statements import write_tasks
from isthmus.record import record

T = TypeVar("T")
GROUP_LIMIT = 512
"""Number of writes at which a group is full; bounds the time for which its first write waits."""
CROWDED_SECONDS = 0.1
"""Time in seconds after several writes came together, during which a group waits for more writes."""
CROWDED_TURNS = 4
"""Maximum number of turns of the event loop for which a group waits while each brings more writes."""
COMMITS_ON_LOOP = 48
"""Number of commits on the event loop after which the thread commits, which empties SQLite's log when it is long."""
COMMITS_BETWEEN = 2
"""Number of commits on the thread then: the first may empty the log, and the second starts a new one."""
LOG_PAGES = 1000
"""Length of SQLite's log, in pages, at which the thread empties it: SQLite's own default."""
SLOW_SECONDS = 0.05
"""Time in seconds above which a commit on the event loop was slow."""
PAUSE_SECONDS = 1.0
"""Time in seconds after a slow commit during which only the thread commits."""


@record
class _Write(Generic[T]):
    work: Callable[[sqlite3.Connection], T] | None
    write: Callable[[], TaskWrite] | None
    """Makes the write, if it is none by a function."""
    future: Written[T]
    full_sync: bool
    series: Hashable
    is_brief: bool


class GroupWriter:
    """Does writes on a connection, each group in one transaction, and resolves their futures after the commit.

    A write is a :data:`TaskWrite` or a function. A function that raises an :class:`IsthmusError` must not have written
    anything; the rest of its group is unaffected. ``check`` is called before each group and raises a JournalError when
    nothing may be written. ``clock`` returns Unix seconds, in any thread.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        loop: asyncio.AbstractEventLoop,
        check: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._check = check
        self._loop = loop
        self._queue: SimpleQueue[list[_Write[Any]] | None] = SimpleQueue()
        self._gathered: list[_Write[Any]] = []
        self._under_way = 0
        """Number of hand-overs to the thread that have not been resolved."""
        self._crowded_until = loop.time()
        self._turns = 0
        """Number of turns for which the gathered writes have waited."""
        self._seen = 0
        """Number of gathered writes when the last of these turns began."""
        self._paused_until = loop.time()
        self._commits_on_loop = 0
        self._commits_between = 0
        self._closed = False
        self._sync = ""
        self._is_on_loop = False
        """Whether the connection is set up for the event loop."""
        (self._busy_milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
        self._broken: set[Hashable] = set()
        """Series that have lost a write. Like the connection, the loop may use it only while the thread has no work."""
        self._thread = threading.Thread(target=self._run, name="isthmus-journal", daemon=True)
        self._thread.start()

    def submit(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        full_sync: bool = False,
        series: Hashable = None,
        is_brief: bool = False,
    ) -> Written[T]:
        """Queue ``work``; the future is done when its group is committed. Brief work may be done on the event loop.

        Writes of one ``series`` build on each other: once the disk has refused one, the later ones fail too, also the
        ones that are already queued.

        Raises:
            JournalError: the writer is closed.
        """
        return self._put(_Write(work, None, Written(loop=self._loop), full_sync, series, is_brief))

    def submit_write(
        self,
        write: Callable[[], TaskWrite],
        *,
        full_sync: bool = False,
        series: Hashable = None,
        is_brief: bool = False,
    ) -> Written[Any]:
        """Queue a write, which is made when its turn comes: its events are encoded then. Otherwise like :meth:`submit`.

        Raises:
            JournalError: the writer is closed.
        """
        return self._put(_Write(None, write, Written[Any](loop=self._loop), full_sync, series, is_brief))

    def _put(self, write: "_Write[T]") -> Written[T]:
        if self._closed:
            raise JournalError("the journal is closed; nothing more can be written")
        if not self._gathered:
            # A commit, or waking the thread, costs more than most writes, so it is done once per turn of the loop.
            self._loop.call_soon(self._hand_over)
        self._gathered.append(write)
        return write.future

    def _hand_over(self) -> None:
        """Commit the gathered writes, hand them to the thread, or wait one turn while more are coming."""
        count = len(self._gathered)
        now = self._loop.time()
        if count > self._seen and self._turns < CROWDED_TURNS and now < self._crowded_until and not self._closed:
            self._seen = count
            self._turns += 1
            self._loop.call_soon(self._hand_over)
            return
        self._seen = self._turns = 0
        if count > 1:
            self._crowded_until = now + CROWDED_SECONDS
        writes, self._gathered = self._gathered, []
        if not writes:
            return
        outcomes = self._commit_on_loop(writes) if self._fits_loop(writes, now) else None
        if outcomes is None:
            self._under_way += 1
            self._queue.put(writes)
            return
        if (end := self._loop.time()) - now > SLOW_SECONDS:
            self._paused_until = end + PAUSE_SECONDS
        _resolve(writes, outcomes)

    def _fits_loop(self, writes: "list[_Write[Any]]", now: float) -> bool:
        """Return whether to commit on the event loop."""
        if self._under_way or self._closed or now < self._paused_until:
            return False
        if any(write.full_sync or not write.is_brief for write in writes):
            return False
        if self._commits_on_loop == COMMITS_ON_LOOP:
            self._commits_on_loop, self._commits_between = 0, COMMITS_BETWEEN
        if self._commits_between:
            self._commits_between -= 1
            return False
        self._commits_on_loop += 1
        return True

    def _commit_on_loop(self, writes: "list[_Write[Any]]") -> list[Any] | None:
        """Return the outcomes of a commit that does not wait for a lock; None leaves the writes to the thread."""
        try:
            self._begin("NORMAL", is_on_loop=True)
        except (sqlite3.OperationalError, JournalError):
            return None  # The thread waits for the lock, or reports the error.
        try:
            return self._transact(writes)
        except sqlite3.OperationalError as error:
            return self._failed(writes, error)
        except Exception:  # a single write is at fault, which the thread finds
            roll_back(self._connection)
            return None

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
            hand_overs = 0
            writes = self._queue.get()
            while writes is not None:
                hand_overs += 1
                group += writes
                if len(group) >= GROUP_LIMIT or self._queue.empty():
                    break
                writes = self._queue.get()
            closing = writes is None
            if group:
                outcomes = self._commit(group)
                self._loop.call_soon_threadsafe(self._committed, hand_overs, group, outcomes)
        self._connection.close()

    def _committed(self, hand_overs: int, group: "list[_Write[Any]]", outcomes: list[Any]) -> None:
        self._under_way -= hand_overs
        _resolve(group, outcomes)

    def _commit(self, group: "list[_Write[Any]]") -> list[Any]:
        """Return the outcome of each write. Never raises: callers wait for this thread, so it must not die."""
        try:
            self._begin("FULL" if any(write.full_sync for write in group) else "NORMAL")
            return self._transact(group)
        except Exception as error:
            if len(group) > 1 and not isinstance(error, sqlite3.OperationalError):
                # A single write is at fault, not the disk: the others must not fail with it.
                roll_back(self._connection)
                return [self._commit([write])[0] for write in group]
            return self._failed(group, error)

    def _failed(self, group: "list[_Write[Any]]", error: Exception) -> list[Any]:
        roll_back(self._connection)
        self._broken.update(write.series for write in group if write.series is not None)
        failure = JournalError(_explain(error))
        failure.__cause__ = error
        return [failure] * len(group)

    def _begin(self, sync: str, *, is_on_loop: bool = False) -> None:
        if self._check is not None:
            self._check()
        connection = self._connection
        if is_on_loop != self._is_on_loop:
            connection.execute(f"PRAGMA busy_timeout={0 if is_on_loop else self._busy_milliseconds}")
            connection.execute(f"PRAGMA wal_autocheckpoint={0 if is_on_loop else LOG_PAGES}")
            self._is_on_loop = is_on_loop
        if sync != self._sync:
            connection.execute(f"PRAGMA synchronous={sync}")
            self._sync = sync
        connection.execute("BEGIN IMMEDIATE")

    def _transact(self, group: "list[_Write[Any]]") -> list[Any]:
        outcomes: list[Any] = []
        made: list[TaskWrite | IsthmusError] = []
        for one in group:
            if one.series in self._broken:
                made.append(after_failure())
            elif one.write is not None:
                made.append(_result(one.write))
            elif one.work is not None:
                outcomes += self._store(made)
                outcomes.append(_result(partial(one.work, self._connection)))
                made = []
        outcomes += self._store(made)
        self._connection.execute("COMMIT")
        return outcomes

    def _store(self, writes: Sequence[TaskWrite | IsthmusError]) -> list[Any]:
        return write_tasks(self._connection, writes, self._clock()) if writes else []


def _result(work: Callable[[], T]) -> T | IsthmusError:
    """Return the result of a function, or its error."""
    try:
        return work()
    except IsthmusError as error:
        return error


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
