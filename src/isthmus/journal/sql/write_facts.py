"""Facts that a group of writes depends on, which are read and locked before it, and which facts those are. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from isthmus.client import Delivery, UserLimits
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sql.rows import NO_CALLS
from isthmus.journal.sql.task_writes import (
    Append,
    Claim,
    Create,
    FinishRun,
    Release,
    Renew,
    Take,
    TakeOver,
    TaskWrite,
    tasks_of,
)
from isthmus.record import record

if TYPE_CHECKING:
    from collections import Counter

KEPT = ("id", '"user"', "parent")
"""Columns of a task that stay and that writes depend on, in the order of :class:`TaskEntry`."""
CHANGING = (
    *("state", "seq", "owner", "epoch", "lease_until", "updated", "error", "reason", "pending", "tag", "reserved"),
    "running_limit",
)
"""Columns of a task that writes change, in the order of :class:`TaskEntry`, where they come next."""
NEW = {
    "context": "new.context_id",
    "workspace": "new.workspace",
    "title": "new.title",
    "label": "new.label",
    "message": "new.message_id",
    "digest": "new.digest",
    "created": "updated",  # in the same transaction
}
"""Further columns of a new task, which stay, and the attributes of its :class:`TaskEntry` that they are stored from."""


@dataclass(slots=True)
class TaskEntry:
    """A task in a transaction, as the writes before have left it; ``key`` is None until it is stored.

    Has what writes depend on or change; the rest of a row is in the task or the row that a write carries.
    """

    key: int | None
    task_id: str
    user: str
    parent: str
    state: str
    seq: int
    owner: str | None
    epoch: int
    lease_until: float
    updated: float
    error: str | None = None
    reason: str | None = None
    pending: str = NO_CALLS
    tag: int = 0
    """Start tag of a task that waits in the queue, otherwise 0."""
    reserved: str = ""
    """Owner of leases for whom a task waits in the queue; empty for any."""
    running_limit: int | None = None
    """Number of its user's tasks at work below which it may leave the queue; None for any."""
    inbox: int = 0
    """Number of events in its inbox, where the journal keeps it."""
    size: int = 0
    """Approximate size of its events in bytes, where the journal keeps it."""
    has_others_waiting: bool = False
    """Whether its user's limit of tasks at work may hold others back. It is read for the writes that end a run."""
    new: NewTask | None = None
    """The task, if the group creates it."""
    is_changed: bool = False
    has_later_prompt: bool = False
    """Whether the group gave it a message after its first event."""


@record
class Waiting:
    """An event in an inbox, as it is stored there."""

    number: int
    body: str


class Facts:
    """Knowledge of a group: the locked rows by task id, and whatever else its writes depend on."""

    __slots__ = ("begun", "counts", "entries", "inboxes", "started", "tags")

    def __init__(self) -> None:
        self.entries: dict[str, TaskEntry] = {}
        self.inboxes: dict[str, list[Waiting]] = {}
        self.begun: dict[tuple[str, str], list[tuple[str, str]]] = {}
        """Tasks that began with a message, and its digests, by user and message id; the newest task comes first."""
        self.counts: dict[str, Counter[str]] = {}
        """Numbers of unended tasks by user and :func:`counted_as`, without the tasks that another one began."""
        self.started = 0
        """Start tag of the task that left the queue last."""
        self.tags: dict[str, int] = {}
        """Newest start tag of each user that waits in the queue."""


class Needs:
    """Facts that writes depend on: of which tasks, messages and users. Each group asks, so it is quick to make."""

    __slots__ = ("inboxes", "limited", "messages", "queueing", "tasks")

    def __init__(self, writes: Iterable[TaskWrite]) -> None:
        self.tasks: set[str] = set()
        self.inboxes: set[str] = set()
        """Tasks whose inboxes are read."""
        self.messages: set[tuple[str, str]] = set()
        """Users and message ids that new tasks begin with."""
        self.limited: set[str] = set()
        """Users with limits."""
        self.queueing: set[str] = set()
        """Users whose tasks come into the queue."""
        for write in writes:
            self._add(write)

    def _add(self, write: TaskWrite) -> None:
        match write:
            case Append():
                self.tasks.add(write.lease.task_id)
            case Create():
                # Its row is looked for only for other writes: the database refuses a task that exists already.
                task = write.task
                self._add_begun(task.user, write)
                if task.message_id:
                    self.messages.add((task.user, task.message_id))
            case Claim():
                self.tasks.add(write.row.task_id)
                self._add_begun(write.row.user, write)
            case FinishRun() | Take():
                self.tasks.add(write.lease.task_id)
                self.inboxes.add(write.lease.task_id)
            case TakeOver() | Renew() | Release():
                self.tasks.update(tasks_of(write))
            case _:
                assert_never(write)

    def _add_begun(self, user: str, write: Create | Claim) -> None:
        if write.owner is None:
            self.queueing.add(user)
        if has_limits(write.limits):
            self.limited.add(user)


NewEvent: TypeAlias = tuple[TaskEntry, Delivery, str]
"""An event to store: its task, the event with its number and time, and its stored form. A tuple is quick to make."""


def has_limits(limits: UserLimits) -> bool:
    """Return whether a user's tasks are counted for these limits."""
    return limits.max_tasks is not None or limits.max_running is not None
