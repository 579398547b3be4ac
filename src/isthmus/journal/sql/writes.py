"""The writes of a journal in an SQL database, as data for a group.

:mod:`isthmus.journal.port.base` documents each method.

Not here: connections and transactions; a journal of a kind of database implements :meth:`SqlWrites.submit_events` and
:meth:`SqlWrites.submit`. What a write comes to is decided in :mod:`isthmus.journal.sql.write_group`.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from isthmus.client import NO_LIMITS, Delivery, UserLimits
from isthmus.development_tool import ToolCall
from isthmus.events import AgentEvent
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import ClaimedTask, Finished, Lease, NewTask, TaskRow
from isthmus.journal.sql.pushes import SqlPushes
from isthmus.journal.sql.rows import stored_calls
from isthmus.journal.sql.task_writes import Append, Claim, Create, FinishRun, Release, Renew, Take, TakeOver, TaskWrite

if TYPE_CHECKING:
    import asyncio


class EventWriter(Protocol):
    """A function that queues a write with events."""

    def __call__(
        self,
        events: Sequence[AgentEvent],
        write: Callable[[Sequence[str]], TaskWrite],
        *,
        series: Lease | None = None,
        full_sync: bool = False,
    ) -> "asyncio.Future[Any]":
        """Return the result of the write, once it is committed.

        ``write`` makes it from the stored form of the events, when its turn comes. Writes of one ``series`` build on
        each other: once one has failed for want of a disk or a database, the later ones fail, too. With ``full_sync``
        the write is on the disk when it is done.
        """
        ...


class SqlWrites(Journal):
    """The methods of a :class:`~isthmus.journal.port.base.Journal` that write the tasks of leases."""

    _pushes: SqlPushes

    @abstractmethod
    def submit(self, write: TaskWrite) -> "asyncio.Future[Any]":
        """Queue a write without events; return its result, once it is committed."""

    @abstractmethod
    def submit_events(
        self,
        events: Sequence[AgentEvent],
        write: Callable[[Sequence[str]], TaskWrite],
        *,
        series: Lease | None = None,
        full_sync: bool = False,
    ) -> "asyncio.Future[Any]":
        """Queue a write with events, as an :class:`EventWriter`."""

    @override
    def create(
        self,
        task: NewTask,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[ClaimedTask]:
        written = self.submit_events(events, lambda bodies: Create(task, events, bodies, owner, lease_seconds, limits))
        self.changes.follow(task.task_id, written)
        return written

    @override
    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        written = self.submit_events(
            events, lambda bodies: Append(lease, events, bodies), series=lease, full_sync=full_sync
        )
        self._pushes.watch(events, written)
        self.changes.follow(lease.task_id, written, events)
        return written

    @override
    def finish(
        self,
        lease: Lease,
        events: Sequence[AgentEvent],
        pending: Sequence[ToolCall],
        *,
        discard_inbox: bool = False,
    ) -> Awaitable[Finished]:
        questions = stored_calls(pending)
        written = self.submit_events(
            events, lambda bodies: FinishRun(lease, events, bodies, questions, discard_inbox), series=lease
        )
        self._pushes.watch(events, written)
        self.changes.follow(lease.task_id, written)
        return written

    @override
    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        return self.submit_events(events, lambda bodies: Take(lease, events, bodies, count), series=lease)

    @override
    def claim(
        self,
        row: TaskRow,
        events: Sequence[AgentEvent],
        owner: str,
        lease_seconds: float,
        limits: UserLimits = NO_LIMITS,
    ) -> Awaitable[ClaimedTask | None]:
        written = self.submit_events(events, lambda bodies: Claim(row, events, bodies, owner, lease_seconds, limits))
        self.changes.follow(row.task_id, written)
        return written

    @override
    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> Awaitable[ClaimedTask | None]:
        return self.submit(TakeOver(row, owner, lease_seconds))

    @override
    def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Awaitable[Sequence[Lease]]:
        return self.submit(Renew(leases, lease_seconds))

    @override
    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        return self.submit(Release(leases))
