"""A group of writes that share one transaction: what each comes to, and the rows that the group leaves. No I/O.

The facts that its writes depend on are read first, and their rows locked. Everything is decided here, for each kind of
database, and the result is stored in a few statements, however many writes there are. The statements:
:mod:`isthmus.journal.sqlite.statements` and :mod:`isthmus.journal.postgres.statements`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from isthmus.client import Delivery, UserLimits
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, event_from_json
from isthmus.journal.port.base import JournalError, StaleLease
from isthmus.journal.port.notices import JournalNotice
from isthmus.journal.port.task_rows import ClaimedTask, Finished, Lease, NewTask, QueuedTask, TaskRow
from isthmus.journal.sql.rows import DELETED, NO_CALLS, calls_from, check_begun, check_counts, counted_as
from isthmus.journal.sql.task_writes import Append, Claim, Create, FinishRun, Release, Renew, Take, TakeOver, TaskWrite
from isthmus.journal.sql.write_facts import Facts, NewEvent, TaskEntry, has_limits

EVENT_BYTES = 100
"""Size of an event in bytes besides its body, approximately."""
_FROM_CLIENTS = (Prompt, ConfirmationAccepted)
"""Types of the events that a client's message causes."""


class WriteGroup:
    """The writes of one transaction at the time ``now`` (Unix seconds), applied one by one to the facts."""

    def __init__(self, facts: Facts, now: float) -> None:
        self._facts = facts
        self._now = now
        self.events: list[NewEvent] = []
        self.messages: list[tuple[TaskEntry, str, int]] = []
        """Task, message id and event number of the events that a client's message caused."""
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
        known = dict.fromkeys(entry.task_id for entry, _, _ in self.events if entry.key is not None)
        return JournalNotice(events=tuple(known), is_queue=self._is_queue)

    def results(self, writes: Iterable[TaskWrite | IsthmusError]) -> list[Any]:
        """Apply writes, and return the result of each, or its error; an error in place of a write is its result."""
        results: list[Any] = []
        for write in writes:
            try:
                results.append(write if isinstance(write, IsthmusError) else self.apply(write))
            except IsthmusError as error:
                results.append(error)
        return results

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
        if begun:
            check_begun([item for item in begun if self._may_be_repeated(item[0])], task)
        self._check_limits(task.user, write.limits, queues=write.owner is None)
        if task.task_id in facts.entries:
            raise exists_already(task.task_id)
        entry = TaskEntry(
            *(None, task.task_id, task.user, task.parent),
            *(TaskState.SUBMITTED, 0, write.owner, 1, now + write.seconds, now),
            new=task,
            is_changed=True,
        )
        facts.entries[task.task_id] = entry
        begun.insert(0, (task.task_id, task.digest))
        self._count(entry)
        deliveries = self._insert(entry, write.events, write.bodies)
        return self._begun(entry, task, now, deliveries, write.limits)

    def _begun(
        self,
        entry: TaskEntry,
        task: NewTask | TaskRow,
        created_at: float,
        deliveries: Sequence[Delivery],
        limits: UserLimits,
    ) -> ClaimedTask | QueuedTask:
        """Return a task that its owner runs; without an owner let it wait in the queue."""
        if entry.owner is not None:
            lease = Lease(entry.task_id, entry.owner, entry.epoch)
            return ClaimedTask(lease, _row(entry, task, created_at), deliveries)
        facts = self._facts
        facts.tags[entry.user] = entry.tag = start_tag(facts.started, facts.tags.get(entry.user, 0))
        self._count(entry, entry.state)
        entry.lease_until, entry.running_limit, self._is_queue = 0.0, limits.max_running, True
        return QueuedTask(_row(entry, task, created_at), deliveries)

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
        entry.lease_until, entry.pending, entry.error, entry.reason = self._now + write.seconds, NO_CALLS, None, None
        entry.reserved = write.reserved
        deliveries = self._append(entry, write.events, write.bodies)
        return self._begun(entry, write.row, write.row.created_at, deliveries, write.limits)

    def _take_over(self, write: TakeOver) -> ClaimedTask | None:
        entry = self._facts.entries.get(write.row.task_id)
        if entry is None or (entry.epoch, entry.lease_until) != (write.row.epoch, write.row.lease_until):
            return None  # taken by another process, or its owner lives after all
        entry.owner, entry.epoch, entry.lease_until = write.owner, entry.epoch + 1, self._now + write.seconds
        before = counted_as(entry.state, entry.tag)
        entry.tag, entry.reserved, entry.running_limit, entry.is_changed = 0, "", None, True
        self._count(entry, before)
        lease = Lease(entry.task_id, write.owner, entry.epoch)
        row = _row(entry, write.row, write.row.created_at)
        return ClaimedTask(lease, row, (), former=write.row.lease)

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
        entry = self._held(write.lease)
        waiting = self._facts.inboxes.get(entry.task_id, [])
        if waiting and not write.discards_inbox:
            return Finished((), [event_from_json(json.loads(item.body)) for item in waiting])
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
        for number, (event, body) in enumerate(zip(events, bodies, strict=True), entry.seq + 1):
            delivery = Delivery(number, self._now, event)
            deliveries.append(delivery)
            self.events.append((entry, delivery, body))
            entry.size += len(body) + EVENT_BYTES
            if isinstance(event, _FROM_CLIENTS):
                entry.has_later_prompt |= isinstance(event, Prompt) and number > 1
                if event.message_id:
                    self.messages.append((entry, event.message_id, number))
        entry.seq += len(deliveries)
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
        if has_limits(limits):
            counts = Counter(self._facts.counts.get(user, {}))
            if counts.get(but, 0):
                counts[but] -= 1
            check_counts(counts, limits, queues=queues)

    def _count(self, entry: TaskEntry, before: str = "") -> None:
        """Count a task as what it is now; it counted as ``before``, or not at all."""
        if entry.parent or entry.user not in self._facts.counts:
            return
        counts = self._facts.counts[entry.user]
        if counts.get(before, 0):
            counts[before] -= 1
        if not TaskState(entry.state).is_terminal:
            counts[counted_as(entry.state, entry.tag)] += 1


def exists_already(task_id: str) -> JournalError:
    """Return the error of a new task whose id another one has."""
    return JournalError(f"task {task_id} exists already; task ids are made once")


def after_failure() -> JournalError:
    """Return the error of a write that builds on one that failed."""
    return JournalError("an earlier write of this task failed, so this one was not made")


def start_tag(started: int, newest: int) -> int:
    """Return the start tag of a task that comes into the queue: see :mod:`isthmus.journal.port.queue`.

    ``started`` is the tag of the task that left the queue last, ``newest`` the newest one of the user that waits there.
    """
    return max(started, newest) + 1


def _row(entry: TaskEntry, task: NewTask | TaskRow, created_at: float) -> TaskRow:
    """Return the row of a task as it is now; ``task`` has what stays the same."""
    return TaskRow(
        *(entry.task_id, task.context_id, task.workspace, task.title, TaskState(entry.state), entry.seq, entry.owner),
        *(entry.epoch, entry.lease_until, created_at, entry.updated, entry.error, entry.reason),
        *(calls_from(entry.pending), entry.user, entry.parent, task.label, entry.tag > 0),
    )
