"""The page /metrics of a server: what was counted as it happened, and what its journal holds.

The journal is read at most every five seconds, and less often if that takes long, however often the page is read: it
costs the users at most a twentieth of a reader's time.
"""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from isthmus.engine import Engine
from isthmus.engine.readiness import Readiness
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.journal.port.base import TaskCount
from isthmus.journal.port.pushes import PushState
from isthmus.observability.exposition import OTHER, Family, gauge, gauges, page
from isthmus.observability.metrics import WorkMetrics
from isthmus.observability.process import process_families
from isthmus.record import record

READ_SECONDS = 5.0
"""Minimum time in seconds between two readings of the journal."""
SHARE = 20
"""Minimum time between two readings, as a multiple of the time that the last one took."""
ANSWER_SECONDS = 2.0
"""Maximum time in seconds that a reader of the page waits for the journal."""

log = logging.getLogger(__name__)


@record
class _Counted:
    """Numbers of the journal."""

    tasks: Sequence[TaskCount]
    queued: int
    pushes: dict[PushState, int]
    size: int


class MetricsPage:
    """The page of one engine; ``users`` is the number of users whose tasks are counted by name, 0 for none."""

    def __init__(
        self,
        engine: Engine,
        work: WorkMetrics,
        ready: Readiness,
        users: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._work = work
        self._ready = ready
        self._users = users
        self._clock = clock
        self._named: dict[str, None] = {}
        """Users that have a name on the page, the first ones that were seen: a series does not come and go."""
        self._reading: asyncio.Task[_Counted | None] | None = None
        self._next = clock()

    async def text(self) -> bytes:
        """Return the page. What the journal does not answer in time is left out."""
        return page(await self.families())

    async def families(self) -> Sequence[Family]:
        """Return the metrics of this moment; those that the journal does not answer in time are without samples."""
        counted = await self._counted()
        is_available = await self._ready.has_journal()
        return [*self._families(counted, is_available=is_available)]

    def known(self) -> Sequence[Family]:
        """Return the metrics without the numbers that others must be asked for."""
        return [*self._families(None, is_available=False)]

    async def _counted(self) -> _Counted | None:
        reading = self._reading
        if reading is None or (reading.done() and self._clock() >= self._next):
            reading = self._reading = asyncio.create_task(self._read(), name="isthmus-metrics")
        await asyncio.wait({reading}, timeout=ANSWER_SECONDS)
        return reading.result() if reading.done() and not reading.cancelled() else None

    async def _read(self) -> _Counted | None:
        journal, began = self._engine.journal, self._clock()
        try:
            return _Counted(
                await journal.counts(by_user=self._users > 0),
                await journal.queue.length(),
                dict(await journal.pushes.counts()),
                await journal.removal.size(),
            )
        except IsthmusError:
            return None
        except Exception:  # the rest of the page is needed all the more
            log.exception("the journal could not be counted because of a bug")
            return None
        finally:
            now = self._clock()
            self._next = now + max(READ_SECONDS, SHARE * (now - began))

    def _families(self, counted: _Counted | None, *, is_available: bool) -> Iterator[Family]:
        engine, replicas = self._engine, self._engine.journal.replicas
        yield self._tasks(counted.tasks if counted is not None else None)
        yield gauge("isthmus_queue_length", "Tasks that wait for a process.", counted and counted.queued)
        pushes = {(state.value,): counted.pushes.get(state, 0) for state in PushState} if counted is not None else {}
        about = "Push notification configs of tasks, by whether events are still sent to them."
        yield gauges("isthmus_pushes", about, ("state",), pushes)
        yield gauge("isthmus_journal_bytes", "Size of the journal's tasks in bytes.", counted and counted.size)
        yield gauge("isthmus_journal_available", "Whether the journal can be read.", is_available)
        yield gauge("isthmus_tasks_running", "Tasks at work in this process.", engine.running)
        slots = math.inf if engine.slots is None else engine.slots
        yield gauge("isthmus_slots", "Tasks that this process runs at once.", slots)
        yield gauge("isthmus_draining", "Whether this process begins no more work.", engine.is_draining)
        yield gauge("isthmus_replicas", "Processes that run tasks of the journal.", replicas.count)
        about = "Whether news of other processes arrive at once."
        yield gauge("isthmus_replica_hears_news", about, replicas.hears)
        yield from self._work.families()
        yield from process_families()

    def _tasks(self, tasks: Sequence[TaskCount] | None) -> Family:
        about = "Tasks in the journal, by state."
        if not self._users:
            found = Counter({(state.value,): 0 for state in TaskState} if tasks is not None else {})
            found.update({(count.state.value,): count.tasks for count in tasks or ()})
            return gauges("isthmus_tasks", about, ("state",), found)
        by_user = Counter[tuple[str, ...]]()
        for count in sorted(tasks or (), key=lambda count: -count.tasks):
            if count.user not in self._named and len(self._named) < self._users:
                self._named[count.user] = None
            user = count.user if count.user in self._named else OTHER
            by_user[count.state.value, user] += count.tasks
        return gauges("isthmus_tasks", f"{about[:-1]} and user (empty: the owner).", ("state", "user"), by_user)
