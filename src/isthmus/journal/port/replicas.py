"""Port to the other processes that work with the same journal: which of them have ended, and news from them.

Correctness depends on none of it: a lease's epoch decides who may write, and what nobody was notified of is found by
looking. Not here: what a process does with the news, see ``isthmus.engine``.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from typing_extensions import override

from isthmus.journal.port.lease_owner import is_gone
from isthmus.journal.port.notices import JournalNotice
from isthmus.record import record

OnNotice: TypeAlias = Callable[[JournalNotice], None]
"""Function that takes news from other processes; called on the event loop, and must not fail."""


@record
class Member:
    """A process that runs tasks: the ``owner`` of its leases, its labels, and how many tasks it runs at once.

    Its leases, and those of the others, last ``lease_seconds``.
    """

    owner: str
    labels: tuple[str, ...] = ()
    slots: int | None = None
    lease_seconds: float = 20.0


@record
class CallProgress:
    """The newest progress of a tool call, or of a thought if ``call`` is empty. ``version`` grows with each change."""

    call: str
    version: int
    body: str
    """The event as JSON."""


class Replicas(Protocol):
    """The processes that work with one journal."""

    @property
    def hears(self) -> bool:
        """Whether news of other processes arrive at once; otherwise they are found by looking often."""
        ...

    @property
    def count(self) -> int:
        """The number of processes that are known here, with this one."""
        ...

    @property
    def has_waited(self) -> bool:
        """Whether this process has reached the journal for a whole lease, and so could all others.

        Until then a lease that ran out says nothing about its owner.
        """
        ...

    def is_gone(self, owner: str, silent_seconds: float = math.inf) -> bool:
        """Return whether this owner of leases has ended, as far as is known here.

        ``silent_seconds`` is the time in seconds since it wrote to the journal, as far as the caller knows.
        """
        ...

    def join(self, member: Member, on_notice: OnNotice) -> Awaitable[None]:
        """Be seen by the others from now on, and hear their news. Return after the first attempt to reach them."""
        ...

    def leave(self) -> Awaitable[None]:
        """Be seen no more."""
        ...

    def send(self, notice: JournalNotice) -> None:
        """Send news to the others."""
        ...

    def publish(self, task_id: str, progress: Sequence[CallProgress]) -> None:
        """Let the others read the newest progress of a task, which replaces that of the same calls."""
        ...

    def forget(self, task_id: str) -> None:
        """Remove the progress of a task, which has ended or come to rest."""
        ...

    def progress(self, task_id: str, after: int) -> Awaitable[Sequence[CallProgress]]:
        """Return the progress of a task that is newer than the version ``after``; raises JournalError."""
        ...


class LocalReplicas(Replicas):
    """The processes of this machine, of which nothing is heard."""

    @property
    @override
    def hears(self) -> bool:
        return False

    @property
    @override
    def count(self) -> int:
        return 1

    @property
    @override
    def has_waited(self) -> bool:
        return True

    @override
    def is_gone(self, owner: str, silent_seconds: float = math.inf) -> bool:
        return is_gone(owner)

    @override
    async def join(self, member: Member, on_notice: OnNotice) -> None: ...

    @override
    async def leave(self) -> None: ...

    @override
    def send(self, notice: JournalNotice) -> None: ...

    @override
    def publish(self, task_id: str, progress: Sequence[CallProgress]) -> None: ...

    @override
    def forget(self, task_id: str) -> None: ...

    @override
    async def progress(self, task_id: str, after: int) -> Sequence[CallProgress]:
        return ()
