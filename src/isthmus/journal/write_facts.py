"""Facts that a group of writes depends on, which are read and locked before it, and which facts those are. No I/O."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from isthmus.client import UserLimits
from isthmus.journal.rows import NO_CALLS
from isthmus.journal.task_rows import NewTask
from isthmus.journal.task_writes import Claim, Create, FinishRun, Take, TaskWrite, tasks_of
from isthmus.record import record

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


@dataclass(slots=True)
class Facts:
    """Knowledge of a group: the locked rows by task id, and whatever else its writes depend on.

    ``begun`` has, by user and message id, the tasks that began with it and their digests, newest first. ``counts`` has
    the numbers of unended tasks by user and :func:`~isthmus.journal.rows.counted_as`, without the tasks that another
    one began. ``started`` is the start tag of the task that left the queue last, ``tags`` the newest tag of each user
    there.
    """

    entries: dict[str, TaskEntry] = field(default_factory=dict[str, TaskEntry])
    inboxes: dict[str, list[Waiting]] = field(default_factory=dict[str, list[Waiting]])
    begun: dict[tuple[str, str], list[tuple[str, str]]] = field(
        default_factory=dict[tuple[str, str], list[tuple[str, str]]]
    )
    counts: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    started: int = 0
    tags: dict[str, int] = field(default_factory=dict[str, int])


@record
class Needs:
    """Facts that a group needs: of its tasks, in the order in which they are locked, of messages and of users."""

    tasks: Sequence[str]
    inboxes: Sequence[str]
    """Tasks whose inboxes are read."""
    messages: Sequence[tuple[str, str]]
    """Users and message ids that new tasks begin with."""
    limited: Sequence[str]
    """Users with limits."""
    queueing: Sequence[str]
    """Users whose tasks come into the queue."""

    @classmethod
    def of(cls, writes: Iterable[TaskWrite]) -> "Needs":
        """Return what these writes depend on."""
        tasks: set[str] = set()
        inboxes: set[str] = set()
        messages: set[tuple[str, str]] = set()
        limited: set[str] = set()
        queueing: set[str] = set()
        for write in writes:
            match write:
                case Create(task, owner=owner, limits=limits):
                    if owner is None:
                        queueing.add(task.user)
                    # Its row is looked for only for other writes: the database refuses a task that exists already.
                    if task.message_id:
                        messages.add((task.user, task.message_id))
                    if has_limits(limits):
                        limited.add(task.user)
                case Claim(row, owner=owner, limits=limits):
                    if owner is None:
                        queueing.add(row.user)
                    if has_limits(limits):
                        limited.add(row.user)
                case FinishRun() | Take():
                    inboxes.add(write.lease.task_id)
                case _:
                    pass
            if not isinstance(write, Create):
                tasks.update(tasks_of(write))
        return cls(sorted(tasks), sorted(inboxes), sorted(messages), sorted(limited), sorted(queueing))


@record
class NewEvent:
    """An event to store: of the task ``task_id``, number ``seq``, at ``at`` (Unix seconds)."""

    task_id: str
    seq: int
    at: float
    kind: str
    body: str


def has_limits(limits: UserLimits) -> bool:
    """Return whether a user's tasks are counted for these limits."""
    return limits.max_tasks is not None or limits.max_running is not None
