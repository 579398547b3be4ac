"""Port of a journal's queue: the tasks that wait for a process with a free slot, and the order in which they start.

Tasks start in the order of their start tags. A task's tag is one more than the larger of two: the tag of the task that
started last, and the newest tag of its user that still waits. So the tasks of several users take turns, however many
one of them has queued, and each starts in the end (start-time fair queueing). Not here: how many tasks a process runs
at once, see :mod:`isthmus.engine.runs.dispatcher`.

A user's limit of tasks at work is kept with each waiting task of the user. Those that it holds back are passed over;
they keep their tags, and so come before the tasks of others that came later.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from isthmus.client import NO_LIMITS, UserLimits
from isthmus.events import AgentEvent
from isthmus.journal.port.task_rows import ClaimedTask, NewTask, QueuedTask, TaskRow
from isthmus.record import record


@record
class QueueScope:
    """The tasks that a process may take: with one of its ``labels``, and if there are ``roots``, in or below one.

    With ``is_reserved`` it takes those alone that are reserved for it.
    """

    labels: tuple[str, ...] = ("",)
    roots: tuple[str, ...] = ()
    is_reserved: bool = False


def no_grace() -> bool:
    """Return False: each lease that ran out is replaced."""
    return False


class TaskQueue(Protocol):
    """The tasks that wait for a process. All methods raise :class:`~isthmus.journal.port.base.JournalError`."""

    def add(self, task: NewTask, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS) -> Awaitable[QueuedTask]:
        """Add a new task, like :meth:`~isthmus.journal.port.base.Journal.create`, which waits.

        It does not count as working, and is taken when the ``limits`` allow its user one more task at work.

        Raises:
            LimitReached: its user has as many unended tasks as the ``limits`` allow.
        """
        ...

    def resume(
        self, row: TaskRow, events: Sequence[AgentEvent], limits: UserLimits = NO_LIMITS, reserved: str = ""
    ) -> Awaitable[QueuedTask | None]:
        """Add events to a task at rest, like :meth:`~isthmus.journal.port.base.Journal.claim`, and let it wait.

        The owner ``reserved`` of leases has what the task needs to go on: it is left to that one, unless it is gone or
        does not take it in the time of a lease. As with :meth:`add`, it is taken when the ``limits`` allow it.

        Raises:
            LimitReached: its user has as many other unended tasks as the ``limits`` allow.
        """
        ...

    def take(
        self,
        owner: str,
        lease_seconds: float,
        limit: int,
        scope: QueueScope,
        gone: Sequence[str] = (),
        is_in_grace: Callable[[], bool] = no_grace,
    ) -> Awaitable[Sequence[ClaimedTask]]:
        """Lease up to ``limit`` tasks to ``owner``, those first that are to start first.

        Besides the tasks that wait these are the ones whose process released them, let their lease expire, or is one of
        the ``gone`` owners. Tasks of subagents are left to :meth:`abandoned_children`. If ``is_in_grace`` returns true
        when it is done, tasks are left to owners whose lease ran out; it is called in any thread.

        Fewer than ``limit`` may be taken though more could start, but then :meth:`holds_back` is true.
        """
        ...

    async def abandoned_children(
        self, limit: int, scope: QueueScope, gone: Sequence[str] = (), *, in_grace: bool = False
    ) -> Sequence[TaskRow]:
        """Return up to ``limit`` tasks of subagents whose process released them, is gone, or let their lease expire.

        With ``in_grace`` tasks are left to owners whose lease ran out.
        """
        ...

    async def holds_back(self, scope: QueueScope) -> bool:
        """Return whether tasks wait whose users' limits of tasks at work may be what holds them back."""
        ...

    async def owners(self) -> Mapping[str, float]:
        """Return the owners of the tasks at work, and the end of their last lease (Unix seconds, journal's clock)."""
        ...

    async def length(self) -> int:
        """Return the number of tasks that wait."""
        ...
