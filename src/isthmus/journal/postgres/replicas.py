"""The processes that work with a journal in PostgreSQL. :mod:`isthmus.journal.port.replicas` documents each method.

Each has a connection of its own, with which it listens for news (LISTEN), and which holds an advisory lock: the
database releases it when the process ends, however it ends, so that the others see that within a second. A process that
hangs or is cut off keeps its lock or its lease for a while; for these the lease decides.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from isthmus.journal.port.grace_period import GracePeriod
from isthmus.journal.port.lease_owner import is_gone
from isthmus.journal.port.notices import ALL, NOTHING, JournalNotice, decode, encode
from isthmus.journal.port.replicas import CallProgress, Member, OnNotice, Replicas
from isthmus.journal.postgres.connection import Database, end, without_secrets
from isthmus.journal.postgres.driver import Connection, is_lost
from isthmus.journal.postgres.locks_seen import LocksSeen
from isthmus.journal.postgres.statements import CHANNEL, lock_number
from isthmus.journal.sql.reads import RowReader

LOOK_SECONDS = 0.3
"""Interval in seconds at which the locks of the others are looked at."""
GAP_SECONDS = 2.0
"""Minimum time in seconds between two looks after which the database counts as having been away."""
STOPPED_SECONDS = 10.0
"""Minimum time in seconds for which a transaction that writes waits for the rest of a statement before it is ended."""
STOPPED_LOOK_SECONDS = 1.0
"""Interval in seconds at which such transactions are looked for."""
HEAR_SECONDS = 2.0
"""Maximum time in seconds for hearing one's own first notice; after it the connection does not pass any on."""
PROGRESS_SECONDS = 0.2
"""Minimum time in seconds between two writes of progress."""
PAUSES = (0.1, 0.25, 0.5, 1.0)
"""Times in seconds between attempts to connect; the last one is used again and again."""
_SESSION = (
    # A machine that was cut off or lost its power answers no more: its lock is to be free soon.
    "SET tcp_keepalives_idle = 2",
    "SET tcp_keepalives_interval = 1",
    "SET tcp_keepalives_count = 2",
)
_DELETE_GONE = (
    "DELETE FROM replicas WHERE owner = ANY($1::text[]) AND NOT EXISTS (SELECT 1 FROM tasks"
    " WHERE tasks.owner = replicas.owner AND tasks.state IN ('submitted', 'working') AND tasks.tag = 0)"
)
_END_STOPPED = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND application_name = 'isthmus' AND backend_xid IS NOT NULL AND state = 'active'"
    # A copy waits for the other database with a statement of its own.
    " AND wait_event = 'ClientRead' AND query NOT LIKE 'COPY %'"
    " AND state_change < clock_timestamp() - make_interval(secs => $1)"
)
"""Ends the transactions of processes that were stopped between preparing a statement and running it.

To the database they are not idle, so that idle_in_transaction_session_timeout leaves them their locks, and thereby
their tasks, for as long as they are stopped.
"""
_PUBLISH = (
    "INSERT INTO progress (task, call, version, body)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])"
    " ON CONFLICT (task, call) DO UPDATE SET version = excluded.version, body = excluded.body"
    " WHERE progress.version < excluded.version"
)

log = logging.getLogger(__name__)


class PostgresReplicas(Replicas):
    """The processes of one database."""

    def __init__(self, database: Database, read: RowReader) -> None:
        self._others = 0
        self._database = database
        self._read = read
        self._member: Member | None = None
        self._on_notice: OnNotice = _ignore
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()
        self._heard = asyncio.Event()
        self._speaks = asyncio.Event()
        self._outbox: list[JournalNotice] = []
        self._progress: dict[tuple[str, str], CallProgress] = {}
        self._ended: set[str] = set()
        self._has_lock = False
        self._may_end_stopped = True
        self._grace = GracePeriod(0.0, GAP_SECONDS)
        self._looked = LocksSeen()

    @property
    def others(self) -> bool:
        """Whether there are other processes."""
        return self._others > 0

    @property
    @override
    def hears(self) -> bool:
        return self._heard.is_set()

    @property
    @override
    def count(self) -> int:
        return 1 + self._others

    @property
    @override
    def has_waited(self) -> bool:
        return self._grace.has_waited(time.monotonic())

    @override
    def is_gone(self, owner: str, silent_seconds: float = math.inf) -> bool:
        if is_gone(owner):
            return True
        now = time.monotonic()
        return self._looked.is_gone(owner, now - silent_seconds, has_waited=self._grace.has_waited(now))

    @override
    async def join(self, member: Member, on_notice: OnNotice) -> None:
        self._member, self._on_notice = member, on_notice
        self._grace = GracePeriod(member.lease_seconds, max(GAP_SECONDS, member.lease_seconds / 4))
        self._task = asyncio.create_task(self._run(member), name="isthmus-replicas")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEAR_SECONDS):
                await self._first.wait()

    async def vanish(self) -> None:
        """Be seen no more, without a word: the others find out, as if this process had been killed."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @override
    async def leave(self) -> None:
        if self._task is None or (member := self._member) is None:
            return
        await self.vanish()
        connection: Connection | None = None
        with contextlib.suppress(Exception):  # the database is away; the others will see that this process is gone
            connection = await self._database.connect()
            await connection.execute("DELETE FROM replicas WHERE owner = $1", member.owner)
            await self._say(connection, member, JournalNotice(is_queue=True))
        await end(connection)

    @override
    def send(self, notice: JournalNotice) -> None:
        if self.others and self.hears:  # while the database is away nothing is gathered: it would grow
            self._outbox.append(notice)
            self._speaks.set()

    @override
    def publish(self, task_id: str, progress: Sequence[CallProgress]) -> None:
        self._progress.update({(task_id, one.call): one for one in progress})
        self._speaks.set()

    @override
    def forget(self, task_id: str) -> None:
        for key in [key for key in self._progress if key[0] == task_id]:
            del self._progress[key]
        self._ended.add(task_id)
        self._speaks.set()

    @override
    async def progress(self, task_id: str, after: int) -> Sequence[CallProgress]:
        return await self._read(
            "SELECT call, version, body FROM progress WHERE task = ? AND version > ? ORDER BY version",
            (task_id, after),
            lambda values: CallProgress(*values),
        )

    def text_of(self, notice: JournalNotice) -> str | None:
        """Return the text with which a transaction notifies the others; None if that is not needed."""
        if self._member is None or not self.others or not notice:
            return None
        return encode(self._member.owner, notice)

    # --- the connection ---

    async def _run(self, member: Member) -> None:
        failures = 0
        while True:
            connection: Connection | None = None
            began = time.monotonic()
            try:
                connection = await self._database.connect()
                await self._begin(connection, member)
                failures = 0
                await self._attend(connection, member)
            except Exception as error:  # whatever it is, other processes are found by looking until it is over
                if not failures:
                    log.warning("no news of other processes: %s", without_secrets(str(error) or type(error).__name__))
                failures += 1
            finally:
                self._heard.clear()
                self._has_lock = False
                self._grace.lost()
                self._looked = LocksSeen()
                await end(connection)
            self._first.set()
            # A connection that was good for a while is made again at once, before the others miss the lock.
            if failures or time.monotonic() - began < PAUSES[-1]:
                await asyncio.sleep(PAUSES[min(max(failures, 1), len(PAUSES)) - 1])

    async def _begin(self, connection: Connection, member: Member) -> None:
        """Listen, be seen, and find out whether notices arrive."""
        is_pooled = self._database.is_pooled
        number = None if is_pooled else lock_number("replica", member.owner)
        if not is_pooled:
            for statement in _SESSION:
                await connection.execute(statement)
            await connection.add_listener(CHANNEL, self._receive)
            connection.add_termination_listener(self._notice_end)
        await connection.execute(
            "INSERT INTO replicas (owner, lock, labels, slots, begun)"
            " VALUES ($1, $2, $3, $4, extract(epoch FROM clock_timestamp()))"
            " ON CONFLICT (owner) DO UPDATE SET lock = excluded.lock",
            *(member.owner, number, " ".join(member.labels), member.slots),
        )
        await self._take_lock(connection, member)
        await self._look(connection, member)
        if not is_pooled:
            await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, encode(member.owner, NOTHING))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEAR_SECONDS):
                    await self._heard.wait()
            if not self._heard.is_set():
                log.warning(
                    "the database's connection passes no notices on: is it a pool? Add ?pool=transaction to the URL"
                )
        self._first.set()
        self._on_notice(ALL)  # What was said before was not heard.

    async def _attend(self, connection: Connection, member: Member) -> None:
        """Look at the others, and send what there is to say, until the connection is lost."""
        looked = looked_for_stopped = time.monotonic()
        published: float | None = None
        while not connection.is_closed():
            pause = PROGRESS_SECONDS if self._progress else LOOK_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._speaks.wait()
            self._speaks.clear()
            now = time.monotonic()
            if now - looked >= LOOK_SECONDS:
                looked = now
                await self._take_lock(connection, member)
                await self._look(connection, member)
            if self.others and now - looked_for_stopped >= STOPPED_LOOK_SECONDS:
                looked_for_stopped = now
                await self._end_stopped(connection)
            outbox, self._outbox = self._outbox, []
            for notice in outbox:
                await self._say(connection, member, notice)
            is_due = published is None or now - published >= PROGRESS_SECONDS
            if is_due and (self._progress or self._ended):
                published = now
                await self._write_progress(connection, member)

    async def _take_lock(self, connection: Connection, member: Member) -> None:
        # An old connection of this process may still hold it, until the database has noticed that it is lost.
        if not self._has_lock and not self._database.is_pooled:
            number = lock_number("replica", member.owner)
            self._has_lock = await connection.fetchval("SELECT pg_try_advisory_lock($1)", number)

    async def _look(self, connection: Connection, member: Member) -> None:
        """Find out who else there is, and who has gone."""
        rows = await connection.fetch(
            "SELECT owner, pg_try_advisory_xact_lock_shared(lock) FROM replicas WHERE owner <> $1", member.owner
        )
        now, before, had_waited = time.monotonic(), self._grace.since, self.has_waited
        self._grace.reached(now)
        if self._grace.since != before:
            self._looked = LocksSeen(now)
        new = self._looked.take({owner: not is_free for owner, is_free in rows}, now)
        gone = [owner for owner in self._looked.missing if self.is_gone(owner)]
        self._others = len(rows) - len(gone)
        if new or self._grace.has_waited(now) != had_waited:
            if new:
                log.info(
                    "processes that are not connected any more: %s",
                    ", ".join(owner.partition(":")[2] for owner in sorted(new)),
                )
            self._on_notice(JournalNotice(is_queue=True))
        elif gone:
            await connection.execute(_DELETE_GONE, gone)

    async def _end_stopped(self, connection: Connection) -> None:
        """End the transactions that processes hold open which are stopped, if the database lets this user do so."""
        if not self._may_end_stopped:
            return
        try:
            ended = await connection.fetchval(_END_STOPPED, STOPPED_SECONDS)
        except Exception as error:
            if is_lost(error):
                raise
            # Without it the connection is good for all else, and the others would take its loss for our end.
            self._may_end_stopped = False
            log.warning(
                "transactions of processes that are stopped in the middle of a write are not ended: %s. Let the"
                " database's user read pg_stat_activity and call pg_terminate_backend.",
                without_secrets(str(error) or type(error).__name__),
            )
            return
        if ended:
            log.warning("ended %d transactions of processes that are stopped in the middle of a write", ended)

    async def _say(self, connection: Connection, member: Member, notice: JournalNotice) -> None:
        await connection.execute("SELECT pg_notify($1, $2)", CHANNEL, encode(member.owner, notice))

    async def _write_progress(self, connection: Connection, member: Member) -> None:
        progress, self._progress = self._progress, {}
        ended, self._ended = self._ended, set()
        if progress:
            tasks = [task_id for task_id, _ in progress]
            values = list(progress.values())
            bodies = [one.body for one in values]
            await connection.execute(
                _PUBLISH, tasks, [one.call for one in values], [one.version for one in values], bodies
            )
            await self._say(connection, member, JournalNotice(progress=tuple(dict.fromkeys(tasks))))
        if ended:
            await connection.execute("DELETE FROM progress WHERE task = ANY($1::text[])", list(ended))

    def _notice_end(self, connection: object) -> None:
        """Let the loop see that the connection is lost."""
        del connection
        self._speaks.set()

    def _receive(self, connection: object, process: int, channel: str, payload: Any) -> None:
        """Take a notice, on the event loop."""
        del connection, process, channel
        self._heard.set()
        sender, notice = decode(str(payload))
        if notice and (self._member is None or sender != self._member.owner):
            self._on_notice(notice)


def _ignore(notice: JournalNotice) -> None:
    del notice
