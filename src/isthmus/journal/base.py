"""The Journal port: tasks as append-only events with a projection row, a lease and an inbox (DESIGN, section 2).

Only the holder of a task's lease appends to it; every append carries the lease's epoch and fails when it is stale, so
that a process that was paused cannot write. Deliberately not here: what events mean (``isthmus.agent``) and who runs
tasks (``isthmus.engine``).
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from isthmus.client import Delivery
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, TaskState, ToolCall


class JournalError(IsthmusError):
    """The journal cannot be used; its file is as it was."""


class StaleLease(JournalError):
    """Somebody else holds the task now; what was to be written was not."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """The projection of a task's events. Times are Unix seconds; ``seq`` is the number of its last event."""

    task_id: str
    context_id: str
    workspace: str
    title: str
    state: TaskState
    seq: int
    owner: str | None
    epoch: int
    lease_until: float
    created_at: float
    updated_at: float
    error: str | None = None
    reason: str | None = None
    pending: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a task, until somebody else takes it."""

    task_id: str
    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class NewTask:
    """What a task begins with."""

    task_id: str
    context_id: str
    workspace: str
    title: str


class Journal(Protocol):
    """Where tasks are kept.

    Methods that write return an awaitable which is done once the write is committed; the write is queued by the call
    itself, in order, so that a caller may go on without awaiting. All raise :class:`JournalError`.
    """

    def create(
        self, task: NewTask, events: Sequence[AgentEvent], owner: str, lease_seconds: float
    ) -> "Awaitable[Taken]":
        """Add a task in state ``submitted`` with its first events, leased to ``owner``."""
        ...

    def append(
        self, lease: Lease, events: Sequence[AgentEvent], *, full_sync: bool = False
    ) -> Awaitable[Sequence[Delivery]]:
        """Add events. With ``full_sync`` they are on the disk, not only with the operating system, when it returns.

        A StateChange sets the row's state. Raises StaleLease. Once a write of a lease was refused by the disk, so is
        each later one: what is kept has no gaps.
        """
        ...

    def finish(
        self,
        lease: Lease,
        events: Sequence[AgentEvent],
        pending: Sequence[ToolCall],
        *,
        discard_inbox: bool = False,
    ) -> "Awaitable[Finished]":
        """Add the events that end a segment and let go of the lease, unless something came into the inbox meanwhile.

        Then nothing is written, the inbox is returned as it stands, and the lease stays. With ``discard_inbox`` what
        came is dropped instead. Raises StaleLease.
        """
        ...

    def take(self, lease: Lease, events: Sequence[AgentEvent], count: int) -> Awaitable[Sequence[Delivery]]:
        """Add what is kept of the ``count`` oldest events in the inbox and remove those, in one step.

        Raises StaleLease.
        """
        ...

    def claim(
        self, row: TaskRow, events: Sequence[AgentEvent], owner: str, lease_seconds: float
    ) -> "Awaitable[Taken | None]":
        """Take a task at rest as it was read; None when somebody has taken it since.

        The state becomes ``working`` (an ended or waiting task) and the events are added in the same step.
        """
        ...

    def take_over(self, row: TaskRow, owner: str, lease_seconds: float) -> "Awaitable[Taken | None]":
        """Take a task from an owner that is gone; None when somebody else was faster."""
        ...

    def renew(self, leases: Sequence[Lease], lease_seconds: float) -> Awaitable[Sequence[Lease]]:
        """Hold leases longer; returns those that are lost."""
        ...

    def release(self, leases: Sequence[Lease]) -> Awaitable[None]:
        """Let go of tasks that are not at an end, so that another engine may go on with them at once."""
        ...

    def post(self, row: TaskRow, events: Sequence[AgentEvent]) -> Awaitable[None]:
        """Leave events for the owner of a running task: answers, a message, or a cancellation; all or none.

        Raises StaleLease when the task rests or has another owner since it was read, or one of its calls has got
        another answer since.
        """
        ...

    def cancelled(self, leases: Sequence[Lease]) -> Awaitable[Sequence[str]]:
        """The ids of these tasks that have a cancellation in their inbox."""
        ...

    async def inbox(self, task_id: str) -> Sequence[AgentEvent]:
        """What was left for the owner of a running task and is not taken yet."""
        ...

    async def task(self, task_id: str) -> TaskRow | None:
        """One row."""
        ...

    async def tasks(self, limit: int, states: Sequence[TaskState] = ()) -> Sequence[TaskRow]:
        """Rows, last changed first; all states when none are named."""
        ...

    async def workspace_of(self, context_id: str) -> str | None:
        """The workspace of a session; None when there is no such session."""
        ...

    def now(self) -> float:
        """The journal's time, which leases are counted in: Unix seconds."""
        ...

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Delivery]:
        """The task's events after number ``after``, in order."""
        ...

    async def messages(self, task_id: str, limit: int, before: int | None = None) -> Sequence[Delivery]:
        """The last ``limit`` Prompt and ModelReply events, of those before number ``before``; in order."""
        ...

    async def session(self, context_id: str) -> Sequence[tuple[str, Delivery]]:
        """All events of all tasks of a session that a conversation is folded from, in order, with their task ids.

        Text increments, thoughts and retry notices are left out: the ModelReply holds their whole.
        """
        ...

    async def aclose(self) -> None:
        """Finish what is queued and close."""
        ...


@dataclass(frozen=True, slots=True)
class Taken:
    """A lease that was got, the row as it is now, and the events that were added with it."""

    lease: Lease
    row: TaskRow
    deliveries: Sequence[Delivery]


@dataclass(frozen=True, slots=True)
class Finished:
    """``inbox`` is not empty when the segment did not end."""

    deliveries: Sequence[Delivery]
    inbox: Sequence[AgentEvent] = ()
