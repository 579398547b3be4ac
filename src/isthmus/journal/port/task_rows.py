"""Rows of a journal's tasks, and the rights to write to them. Rows are read-only copies of what the journal holds."""

from collections.abc import Sequence

from isthmus.client import Delivery
from isthmus.development_tool import ToolCall
from isthmus.events import AgentEvent, TaskState
from isthmus.journal.port.lease_owner import is_gone
from isthmus.record import record


@record
class TaskRow:
    """The projection of a task's events. Times are Unix seconds; ``seq`` is the number of its last event.

    ``user`` is the name of the task's user; it is empty for the local user. ``parent`` is the id of the task that began
    this one for a part of its work; it is empty for a task that a user began. Only processes with the ``label`` run it,
    unless that is empty. With ``is_queued`` it waits in the queue until a process has a free slot.
    """

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
    user: str = ""
    parent: str = ""
    label: str = ""
    is_queued: bool = False

    @property
    def is_interrupted(self) -> bool:
        """Whether it is at work by its state, and the process that worked on it has ended on this machine."""
        if self.is_queued or self.state is not TaskState.WORKING:
            return False
        return self.owner is None or is_gone(self.owner)

    @property
    def lease(self) -> "FormerLease | None":
        """The lease under which it is at work, for comparison with a later one; None without an owner."""
        return FormerLease(self.owner, self.lease_until) if self.owner is not None else None


@record
class Lease:
    """The right to append to a task, until another process takes the task over."""

    task_id: str
    owner: str
    epoch: int


@record
class NewTask:
    """The first state of a task. ``user`` is the user of the task and of the session ``context_id``.

    ``message_id`` and ``digest`` identify the message that begins the task: the client's id, and a hash of its content.
    ``parent`` is the id of the task that begins this one for a part of its work; empty if a user does. Only processes
    with the ``label`` run it, unless that is empty.
    """

    task_id: str
    context_id: str
    workspace: str
    title: str
    user: str = ""
    message_id: str = ""
    digest: str = ""
    parent: str = ""
    label: str = ""


@record
class FormerLease:
    """A lease that another one replaces: its owner, and the end of its time (Unix seconds of the journal's clock)."""

    owner: str
    until: float


@record
class ClaimedTask:
    """A new lease, the row as it is now, and the events that were added with the claim.

    ``was_queued``: the task waited in the queue, since its last event. ``former`` is the lease under which the task was
    at work until now, or the time for which it was reserved for another owner; None if it was at rest, or released.
    """

    lease: Lease
    row: TaskRow
    deliveries: Sequence[Delivery]
    was_queued: bool = False
    former: FormerLease | None = None


@record
class QueuedTask:
    """A task that waits for a process with a free slot, and the events that were added with it."""

    row: TaskRow
    deliveries: Sequence[Delivery]


@record
class Finished:
    """The outcome of finishing a run: the events added, or the inbox that kept the run from ending."""

    deliveries: Sequence[Delivery]
    inbox: Sequence[AgentEvent] = ()
