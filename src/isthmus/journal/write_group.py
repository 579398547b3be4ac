"""A group of writes that share one transaction: what each comes to, and the rows that the group leaves. No I/O.

The rows of its tasks are read and locked first; everything that a write depends on is decided here, and the result goes
to the database in a few statements, however many writes there are. The statements: :mod:`isthmus.journal.postgres_sql`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from isthmus.client import Delivery, UserLimits
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState
from isthmus.journal.base import JournalError, StaleLease
from isthmus.journal.notices import JournalNotice
from isthmus.journal.rows import DELETED, check_begun, check_counts, counted_as, row_from
from isthmus.journal.task_rows import ClaimedTask, Finished, Lease, QueuedTask, TaskRow
from isthmus.journal.task_writes import (
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

EVENT_BYTES = 100
"""Size of an event in bytes besides its body, approximately."""


@dataclass(slots=True)
class TaskEntry:
    """The row of a task in a transaction, as the writes before have left it; ``key`` is None until it is stored.

    ``values`` has those of the journal's columns in the order of :data:`~isthmus.journal.rows.COLUMNS`.
    """

    key: int | None
    task_id: str
    context: str
    workspace: str
    title: str
    state: str
    seq: int
    owner: str | None
    epoch: int
    lease_until: float
    created: float
    updated: float
    error: str | None
    reason: str | None
    pending: str
    user: str
    parent: str
    label: str
    tag: int
    """Start tag of a task that waits in the queue, otherwise 0."""
    inbox: int
    """Number of events in its inbox."""
    size: int
    """Approximate size of its events in bytes."""
    has_others_waiting: bool = False
    """Whether its user's limit of tasks at work may hold others back. It is read for the writes that end a run."""
    message: str = ""
    digest: str = ""
    reserved: str = ""
    """Owner of leases for whom a task waits in the queue; empty for any."""
    running_limit: int | None = None
    """Number of its user's tasks at work below which it may leave the queue; None for any."""
    is_changed: bool = False
    has_later_prompt: bool = False
    """Whether the group gave it a message after its first event."""

    @property
    def row(self) -> TaskRow:
        """The row as it is now."""
        return row_from(
            (
                *(self.task_id, self.context, self.workspace, self.title, self.state, self.seq, self.owner, self.epoch),
                *(self.lease_until, self.created, self.updated, self.error, self.reason, self.pending, self.user),
                *(self.parent, self.label, self.tag),
            )
        )


@record
class Waiting:
    """An event in an inbox."""

    number: int
    event: AgentEvent


@dataclass(slots=True)
class Facts:
    """Knowledge of a group: the locked rows by task id, and whatever else its writes depend on.

    ``begun`` has, by user and message id, the tasks that began with it and their digests, newest first; ``counts`` has
    the numbers of unended tasks by user and :func:`~isthmus.journal.rows.counted_as`, without those that another task
    began. ``started`` is the start tag
    of the task that left the queue last, ``tags`` the newest tag of each user there.
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
                    if _limits(limits):
                        limited.add(task.user)
                case Claim(row, owner=owner, limits=limits):
                    if owner is None:
                        queueing.add(row.user)
                    if _limits(limits):
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


class WriteGroup:
    """The writes of one transaction at the time ``now`` (Unix seconds), applied one by one to the facts."""

    def __init__(self, facts: Facts, now: float) -> None:
        self._facts = facts
        self._now = now
        self.events: list[NewEvent] = []
        self.messages: list[tuple[str, str, int]] = []
        """Task id, message id and event number of the events that a client's message caused."""
        self.taken: list[int] = []
        """Numbers of the events that leave an inbox."""
        self._is_queue = False

    @property
    def entries(self) -> Mapping[str, TaskEntry]:
        """Rows of all tasks, by task id."""
        return self._facts.entries

    @property
    def notice(self) -> JournalNotice:
        """News for other processes: nobody follows a task there that was created here just now."""
        entries = self._facts.entries
        known = dict.fromkeys(event.task_id for event in self.events if entries[event.task_id].key is not None)
        return JournalNotice(events=tuple(known), is_queue=self._is_queue)

    def apply(self, write: TaskWrite) -> Any:
        """Return the result of a write, as the journal's method of its name has it.

        Raises:
            IsthmusError: it is refused; nothing has changed.
        """
        match write:
            case Create():
                return self._create(write)
            case Append():
                return self._append(self._held(write.lease), write.events, write.bodies)
            case FinishRun():
                return self._finish(write)
            case Take():
                entry = self._held(write.lease)
                deliveries = self._append(entry, write.events, write.bodies)
                self._remove(entry, write.count)
                return deliveries
            case Claim():
                return self._claim(write)
            case TakeOver():
                return self._take_over(write)
            case Renew():
                return self._renew(write)
            case Release():
                for lease in write.leases:
                    if (entry := self._find(lease)) is not None:
                        entry.owner, entry.lease_until, entry.is_changed = None, 0.0, True
                        self._is_queue = True
                return None
            case _:
                assert_never(write)

    def _create(self, write: Create) -> ClaimedTask | QueuedTask:
        task, facts, now = write.task, self._facts, self._now
        begun = facts.begun.setdefault((task.user, task.message_id), []) if task.message_id else []
        check_begun([item for item in begun if self._may_be_repeated(item[0])], task)
        self._check_limits(task.user, write.limits, queues=write.owner is None)
        if task.task_id in facts.entries:
            raise JournalError(f"task {task.task_id} exists already; task ids are made once")
        entry = TaskEntry(
            *(None, task.task_id, task.context_id, task.workspace, task.title, TaskState.SUBMITTED, 0, write.owner, 1),
            *(now + write.seconds, now, now, None, None, "[]", task.user, task.parent, task.label, 0, 0, 0),
            message=task.message_id,
            digest=task.digest,
            is_changed=True,
        )
        facts.entries[task.task_id] = entry
        begun.insert(0, (task.task_id, task.digest))
        if not task.parent:
            facts.counts.setdefault(task.user, Counter())[TaskState.SUBMITTED] += 1
        deliveries = self._insert(entry, write.events, write.bodies)
        return self._begun(entry, deliveries, write.limits)

    def _begun(self, entry: TaskEntry, deliveries: Sequence[Delivery], limits: UserLimits) -> ClaimedTask | QueuedTask:
        """Return a task that its owner runs; without an owner let it wait in the queue."""
        if entry.owner is not None:
            return ClaimedTask(Lease(entry.task_id, entry.owner, entry.epoch), entry.row, deliveries)
        facts = self._facts
        facts.tags[entry.user] = entry.tag = start_tag(facts.started, facts.tags.get(entry.user, 0))
        self._count(entry, entry.state)
        entry.lease_until, entry.running_limit, self._is_queue = 0.0, limits.max_running, True
        return QueuedTask(entry.row, deliveries)

    def _may_be_repeated(self, task_id: str) -> bool:
        """Return whether the message that began a task may have come again: its client does not know of the task."""
        entry = self._facts.entries.get(task_id)
        return entry is None or not (entry.has_later_prompt or entry.state in (TaskState.CANCELED, DELETED))

    def _claim(self, write: Claim) -> ClaimedTask | QueuedTask | None:
        entry = self._facts.entries.get(write.row.task_id)
        counted = "" if entry is None or entry.parent else counted_as(entry.state, entry.tag)
        self._check_limits(write.row.user, write.limits, counted, queues=write.owner is None)
        if entry is None or entry.owner is not None or entry.tag or entry.epoch != write.row.epoch:
            return None
        if entry.state == DELETED:
            return None
        before = entry.state
        entry.state, entry.owner, entry.epoch = TaskState.WORKING, write.owner, entry.epoch + 1
        self._count(entry, before)
        entry.lease_until, entry.pending, entry.error, entry.reason = self._now + write.seconds, "[]", None, None
        entry.reserved = write.reserved
        deliveries = self._append(entry, write.events, write.bodies)
        return self._begun(entry, deliveries, write.limits)

    def _take_over(self, write: TakeOver) -> ClaimedTask | None:
        entry = self._facts.entries.get(write.row.task_id)
        if entry is None or (entry.epoch, entry.lease_until) != (write.row.epoch, write.row.lease_until):
            return None  # taken by another process, or its owner lives after all
        entry.owner, entry.epoch, entry.lease_until = write.owner, entry.epoch + 1, self._now + write.seconds
        before = counted_as(entry.state, entry.tag)
        entry.tag, entry.reserved, entry.running_limit, entry.is_changed = 0, "", None, True
        self._count(entry, before)
        lease = Lease(entry.task_id, write.owner, entry.epoch)
        return ClaimedTask(lease, entry.row, (), former=write.row.lease)

    def _renew(self, write: Renew) -> Sequence[Lease]:
        lost: list[Lease] = []
        for lease in write.leases:
            entry = self._find(lease)
            if entry is None:
                lost.append(lease)
            else:
                entry.lease_until, entry.is_changed = self._now + write.seconds, True
        return lost

    def _finish(self, write: FinishRun) -> Finished:
        waiting = self._facts.inboxes.get(write.lease.task_id, [])
        if waiting and not write.discards_inbox:
            return Finished((), [item.event for item in waiting])
        entry = self._held(write.lease)
        deliveries = self._append(entry, write.events, write.bodies)
        entry.owner, entry.lease_until, entry.pending = None, 0.0, write.questions
        self._is_queue |= entry.has_others_waiting
        self._remove(entry, len(waiting))
        return Finished(deliveries)

    def _append(self, entry: TaskEntry, events: Sequence[AgentEvent], bodies: Sequence[str]) -> Sequence[Delivery]:
        entry.updated, entry.is_changed = self._now, True
        change = next((event for event in reversed(events) if isinstance(event, StateChange)), None)
        if change is not None:
            before = entry.state
            entry.state, entry.error, entry.reason = change.state, change.error, change.reason
            self._count(entry, before)
        return self._insert(entry, events, bodies)

    def _insert(self, entry: TaskEntry, events: Sequence[AgentEvent], bodies: Sequence[str]) -> Sequence[Delivery]:
        deliveries: list[Delivery] = []
        for event, body in zip(events, bodies, strict=True):
            entry.seq += 1
            entry.size += len(body) + EVENT_BYTES
            deliveries.append(Delivery(entry.seq, self._now, event))
            self.events.append(NewEvent(entry.task_id, entry.seq, self._now, type(event).__name__, body))
            entry.has_later_prompt |= isinstance(event, Prompt) and entry.seq > 1
            if isinstance(event, Prompt | ConfirmationAccepted) and event.message_id:
                self.messages.append((entry.task_id, event.message_id, entry.seq))
        return deliveries

    def _remove(self, entry: TaskEntry, count: int) -> None:
        """Remove the ``count`` oldest events from an inbox."""
        waiting = self._facts.inboxes.get(entry.task_id, [])
        self.taken += [item.number for item in waiting[:count]]
        entry.inbox -= len(waiting[:count])
        del waiting[:count]

    def _find(self, lease: Lease) -> TaskEntry | None:
        entry = self._facts.entries.get(lease.task_id)
        if entry is None or (entry.epoch, entry.owner) != (lease.epoch, lease.owner):
            return None
        return entry

    def _held(self, lease: Lease) -> TaskEntry:
        if (entry := self._find(lease)) is None:
            raise StaleLease(f"task {lease.task_id} was taken over by another process; this one stops working on it")
        return entry

    def _check_limits(self, user: str, limits: UserLimits, but: str = "", *, queues: bool) -> None:
        """Check that a user may have one more working or waiting task besides the one that counts as ``but``."""
        if _limits(limits):
            counts = Counter(self._facts.counts.get(user, {}))
            if counts.get(but, 0):
                counts[but] -= 1
            check_counts(counts, limits, queues=queues)

    def _count(self, entry: TaskEntry, before: str) -> None:
        """Count a task as what it is now; it counted as ``before``."""
        if entry.parent or entry.user not in self._facts.counts:
            return
        counts = self._facts.counts[entry.user]
        if counts.get(before, 0):
            counts[before] -= 1
        if not TaskState(entry.state).is_terminal:
            counts[counted_as(entry.state, entry.tag)] += 1


def start_tag(started: int, newest: int) -> int:
    """Return the start tag of a task that comes into the queue: see :mod:`isthmus.journal.queue`.

    ``started`` is the tag of the task that left the queue last, ``newest`` the newest one of the user that waits there.
    """
    return max(started, newest) + 1


def _limits(limits: UserLimits) -> bool:
    return limits.max_tasks is not None or limits.max_running is not None
