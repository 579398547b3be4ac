"""Commits the writes of a journal in PostgreSQL in groups, on one connection, and outlives the database's absence.

Writes that are queued in one turn of the event loop, or while a commit runs, share the next commit. While the database
is away, new requests fail at once, and what running tasks write waits, up to a limit; nothing is lost or done twice: of
a group whose commit was not confirmed, the first event is looked for.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from isthmus.errors import IsthmusError
from isthmus.journal.port.base import JournalError, JournalUnavailable
from isthmus.journal.port.notices import JournalNotice
from isthmus.journal.postgres.attempt import WriteAttempt
from isthmus.journal.postgres.connection import (
    AWAY,
    LOCKED,
    UNKNOWN,
    Database,
    clock_offset,
    end,
    explain_writing,
    limit_locks,
    without_secrets,
)
from isthmus.journal.postgres.driver import Connection, is_conflict, is_locked, is_lost
from isthmus.journal.postgres.held_writes import HeldWrites
from isthmus.journal.sql.task_writes import Release, Renew, TakeOver, TaskWrite, is_request, tasks_of
from isthmus.journal.sql.write_facts import NewEvent
from isthmus.journal.sql.written import Written
from isthmus.record import record

T = TypeVar("T")
log = logging.getLogger(__name__)

GROUP_LIMIT = 512
"""Number of writes at which a group is full."""
GROUP_CHARACTERS = 1024 * 1024
"""Size of the events of a group, in characters, at which it is full: they are sent at a stretch."""
WAITING_WRITES = 20_000
"""Maximum number of writes that wait, for the database or for other writes."""
WAITING_CHARACTERS = 64 * 1024 * 1024
"""Maximum size of their events together as JSON, in characters; a single write may be larger."""
PATIENCE_SECONDS = 300.0
"""Maximum time in seconds for which writes of running tasks wait for the database."""
PAUSES = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Times in seconds between attempts to connect; the last one is used again and again."""
LOCKED_SECONDS = 15.0
"""Maximum time in seconds for which a write waits for the locks of another process."""
CONFLICTS = 5
"""Maximum number of attempts after conflicts with other transactions."""
CLOSE_SECONDS = 5.0
"""Maximum time in seconds for writing what is queued when the journal is closed."""


@record
class Preparation:
    """Work that is done before the transaction of a write, such as encoding events of about ``characters``."""

    work: Callable[[], Awaitable[None]]
    characters: int


@dataclass(slots=True, eq=False)
class _Queued:
    write: TaskWrite | None
    work: Callable[[Connection, float], Awaitable[Any]] | None
    future: Written[Any]
    series: Hashable
    characters: int = 0
    """Size of its events as JSON."""
    before: Preparation | None = None
    locked_since: float | None = None
    """Time at which another process was first found to hold its locks, in monotonic seconds."""

    @property
    def tasks(self) -> Sequence[str]:
        """Ids of the tasks that it writes; none for a function."""
        return () if self.write is None else tasks_of(self.write)


class PostgresWriter:
    """The queue of a journal's writes.

    ``offset`` is by how many seconds the database's clock is ahead of the monotonic one; ``clock`` replaces that clock,
    in Unix seconds. ``text_of`` returns the text with which a group's news is sent to other processes, or None.
    """

    def __init__(
        self,
        database: Database,
        connection: Connection,
        offset: float,
        clock: Callable[[], float] | None,
        text_of: Callable[[JournalNotice], str | None],
    ) -> None:
        self._database = database
        self._text_of = text_of
        self._connection: Connection | None = connection
        self._clock = clock
        self._offset = offset
        self._queue: deque[_Queued] = deque()
        self._held = HeldWrites[_Queued]()
        self._wake = asyncio.Event()
        self._broken: set[Hashable] = set()
        self._waiting_characters = 0
        self._losses = 0
        """Number of times that the database was lost or not reached since the last commit."""
        self._away_since = time.monotonic()
        self._closed = False
        self._running = asyncio.create_task(self._run())

    def now(self) -> float:
        """Return the time of the journal's clock in Unix seconds: that of the database."""
        return time.monotonic() + self._offset if self._clock is None else self._clock()

    def submit(self, write: TaskWrite, series: Hashable = None, before: Preparation | None = None) -> Written[Any]:
        """Queue a write, and what is to be done before it; the future is done when its group is committed.

        Writes of one ``series`` build on each other: once one has failed for want of a database, the later ones fail.

        Raises:
            JournalError: the journal is closed.
        """
        characters = 0 if isinstance(write, TakeOver | Renew | Release) else sum(map(len, write.bodies))
        if before is not None:
            characters = before.characters
        return self._put(_Queued(write, None, Written(loop=asyncio.get_running_loop()), series, characters, before))

    def run(self, work: Callable[[Connection, float], Awaitable[T]], before: Preparation | None = None) -> Written[T]:
        """Queue a function that writes with the connection, at the journal's time, in a transaction of its own.

        ``before`` is done once before that. The function may be called again, if the database was lost before it was
        committed.
        """
        characters = 0 if before is None else before.characters
        return self._put(_Queued(None, work, Written(loop=asyncio.get_running_loop()), None, characters, before))

    def failed(self, error: Exception) -> Written[Any]:
        """Return a write that was refused before it was queued."""
        future: Written[Any] = Written(loop=asyncio.get_running_loop())
        future.set_exception(error)
        return future

    def _put(self, queued: _Queued) -> Written[Any]:
        if self._closed:
            raise JournalError("the journal is closed; nothing more can be written")
        if len(self._queue) + len(self._held) >= WAITING_WRITES or self._waiting_characters >= WAITING_CHARACTERS:
            return self.failed(JournalUnavailable(AWAY))
        self._queue.append(queued)
        self._waiting_characters += queued.characters
        self._wake.set()
        return queued.future

    async def aclose(self) -> None:
        """Commit the queued writes, unless the database is away, and close the connection."""
        self._closed = True
        self._wake.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.shield(self._running)
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running
        left = [*self._held.remove(lambda _: True), *self._queue]
        self._fail(left, JournalError("the journal was closed before this was stored"))
        await end(self._connection)

    async def _run(self) -> None:
        while self._queue or self._held or not self._closed:
            group = self._next_group()
            if not group:
                self._wake.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._held.wait_seconds(time.monotonic())):
                        await self._wake.wait()
                continue
            try:
                await self._commit(await self._prepared(group))
            except asyncio.CancelledError:
                self._fail(group, JournalError("the journal was closed before this was stored"))
                raise
            except Exception as error:  # a bug; the writes that come next must not wait for it
                log.exception("a group of writes failed")
                failure = JournalError("internal error while this was stored, see the log")
                failure.__cause__ = error
                self._give_up(group, failure)

    def _next_group(self) -> list[_Queued]:
        """Take the writes that share the next transaction: up to the limits, or one function, or one that was held."""
        group: list[_Queued] = []
        size = 0
        if (held := self._held.take_due(time.monotonic())) is not None:
            group.append(held)
        while self._queue and not (group and (group[0] is held or not group[0].write or not self._queue[0].write)):
            size += self._queue[0].characters
            if group and (size > GROUP_CHARACTERS or len(group) == GROUP_LIMIT):
                break
            queued = self._queue.popleft()
            if self._held.is_behind(queued.tasks):
                self._held.add(queued, queued.tasks)
            else:
                group.append(queued)
        self._waiting_characters -= sum(one.characters for one in group)
        return group

    async def _prepared(self, group: Sequence[_Queued]) -> Sequence[_Queued]:
        """Do what is to be done before the writes of a group; return those that it did not refuse."""
        for one in group:
            before, one.before = one.before, None  # once, also for a write that is tried again
            try:
                if before is not None:
                    await before.work()
            except IsthmusError as error:
                self._fail([one], error)
        return [one for one in group if not one.future.done()]

    async def _commit(self, group: Sequence[_Queued]) -> None:
        """Commit a group, and set the result of each write."""
        conflicts = 0
        until = time.monotonic() + PATIENCE_SECONDS
        while group:
            now = self.now()
            attempt = WriteAttempt(now)
            left: Sequence[_Queued] = ()
            try:
                connection = await self._connected(group, until)
                if group[0].work is not None:
                    await attempt.call(connection, group[0].work)
                else:
                    writes = [(one.write, one.series in self._broken) for one in group if one.write is not None]
                    await attempt.write(connection, writes, self._text_of)
                self._found()
                if group[0].locked_since is not None:
                    self._held.note_lock(time.monotonic())
                _resolve(group, attempt.outcomes)
            except IsthmusError as error:  # the database is away for too long, or a function refuses
                self._give_up(group, error)
            except Exception as error:
                if is_locked(error):
                    await (self._hold(group[0], error) if len(group) == 1 else self._commit_each(group))
                elif is_conflict(error) and conflicts < CONFLICTS:
                    conflicts += 1
                    left = group
                elif is_lost(error):
                    self._lose(error)
                    left = await self._unstored(group, attempt, until)
                elif len(group) > 1:
                    # A single write is at fault, not the database: the others must not fail with it.
                    await self._commit_each(group)
                else:
                    failure = JournalError(explain_writing(error))
                    failure.__cause__ = error
                    self._give_up(group, failure)
            group = left

    async def _hold(self, queued: _Queued, error: Exception) -> None:
        """Let a write wait whose locks another process holds."""
        now = time.monotonic()
        if queued.locked_since is None:
            queued.locked_since = now
        if now - queued.locked_since < LOCKED_SECONDS:
            self._held.add_locked(queued, queued.tasks, now)
            self._waiting_characters += queued.characters
            return
        failure = JournalUnavailable(LOCKED) if _may_ask_again(queued) else JournalError(explain_writing(error))
        failure.__cause__ = error
        self._give_up([queued], failure)

    async def _commit_each(self, group: Sequence[_Queued]) -> None:
        """Commit the writes of a group one by one, but for those behind one that has to wait for its locks."""
        for one in group:
            if self._held.is_behind(one.tasks):
                self._held.add(one, one.tasks)
                self._waiting_characters += one.characters
            else:
                await self._commit([one])

    async def _unstored(self, group: Sequence[_Queued], attempt: WriteAttempt, until: float) -> Sequence[_Queued]:
        """Return those writes of a lost attempt that are to be tried again; set the results of the others.

        Clients that wait are answered at once, and their writes are not tried again.
        """
        asked = [one for one in group if _may_ask_again(one)]
        is_unknown = attempt.probe is not None or group[0].work is not None
        self._fail(asked, JournalUnavailable(UNKNOWN if is_unknown else AWAY))
        left = [one for one in group if not one.future.done()]
        try:
            if left and attempt.probe is not None and await self._is_stored(attempt.probe, left, until):
                _resolve(group, attempt.outcomes)
                return ()
        except IsthmusError as error:  # the database is away for too long
            self._give_up(left, error)
            return ()
        return left

    def _give_up(self, group: Sequence[_Queued], error: Exception) -> None:
        self._broken.update(one.series for one in group if one.series is not None)
        _resolve(group, [error] * len(group))

    async def _connected(self, group: Sequence[_Queued], until: float) -> Connection:
        """Return the connection; while the database is away, try again, and let the requests that wait fail.

        For a group of requests alone the database is tried once.

        Raises:
            JournalUnavailable: it is away longer than ``until`` (monotonic seconds), or the journal is closed.
        """
        is_asked = all(map(_may_ask_again, group))
        has_tried = False
        while self._connection is None or self._connection.is_closed():
            if has_tried:
                self._refuse_requests()
                if is_asked or self._closed or time.monotonic() > until:
                    raise JournalUnavailable(AWAY)
            # A database that lets in and fails is not asked again without a pause.
            if self._losses > 1 and not is_asked:
                await asyncio.sleep(PAUSES[min(self._losses - 2, len(PAUSES) - 1)])
            has_tried = True
            try:
                self._connection = await self._database.connect()
                await limit_locks(self._connection)
                self._offset = await clock_offset(self._connection)
            except Exception as error:  # whatever it refuses now, it may allow later
                self._lose(error)
        return self._connection

    def _refuse_requests(self) -> None:
        """Let the requests that wait fail: their clients can ask again."""
        asked = [*self._held.remove(_may_ask_again), *(one for one in self._queue if _may_ask_again(one))]
        self._queue = deque(one for one in self._queue if not _may_ask_again(one))
        self._waiting_characters -= sum(one.characters for one in asked)
        self._fail(asked, JournalUnavailable(AWAY))

    def _lose(self, error: BaseException) -> None:
        """Give up the connection after an error."""
        if not self._losses:
            self._away_since = time.monotonic()
            log.warning("the journal's database is away: %s", without_secrets(str(error) or type(error).__name__))
        self._losses += 1
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def _found(self) -> None:
        """Note that the database has committed something."""
        if self._losses:
            log.warning("the journal's database is back after %.1f s", time.monotonic() - self._away_since)
            self._losses = 0

    async def _is_stored(self, probe: NewEvent, group: Sequence[_Queued], until: float) -> bool:
        """Return whether a group was committed though the answer was lost: its first event is there.

        Raises:
            JournalUnavailable: the database cannot be asked.
        """
        entry, item, _ = probe
        while True:
            connection = await self._connected(group, until)
            try:
                return bool(
                    await connection.fetchval(
                        "SELECT 1 FROM events JOIN tasks ON tasks.key = events.task"
                        " WHERE tasks.id = $1 AND events.seq = $2 AND events.at = $3 AND events.type = $4",
                        *(entry.task_id, item.seq, item.at, type(item.event).__name__),
                    )
                )
            except Exception as error:
                if not is_lost(error):
                    raise JournalUnavailable(UNKNOWN) from error
                self._lose(error)

    def _fail(self, group: Sequence[_Queued] | deque[_Queued], error: IsthmusError) -> None:
        for queued in group:
            if not queued.future.done():
                queued.future.set_exception(error)
                queued.future.exception()  # nobody may be waiting any more


def _resolve(group: Sequence[_Queued], outcomes: Sequence[Any]) -> None:
    """Set the results of writes that have none yet."""
    for queued, outcome in zip(group, outcomes, strict=True):
        if queued.future.done():
            continue  # its client was answered while the database was away
        if isinstance(outcome, Exception):
            queued.future.set_exception(outcome)
        else:
            queued.future.set_result(outcome)


def _may_ask_again(queued: _Queued) -> bool:
    """Return whether a client waits for a write, and can ask again."""
    return queued.write is None or is_request(queued.write)
