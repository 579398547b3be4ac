"""The writes of a journal that share transactions, as data: one record for each method of the port. No I/O."""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

from isthmus.client import UserLimits
from isthmus.events import AgentEvent
from isthmus.journal.port.task_rows import Lease, NewTask, TaskRow
from isthmus.record import record


@record
class Create:
    """A new task with its first events, as :meth:`~isthmus.journal.port.base.Journal.create` has it.

    Without an ``owner`` it waits in the queue.
    """

    task: NewTask
    events: Sequence[AgentEvent]
    bodies: Sequence[str]
    owner: str | None
    seconds: float
    limits: UserLimits


@record
class Append:
    """Events of a task whose lease is held."""

    lease: Lease
    events: Sequence[AgentEvent]
    bodies: Sequence[str]


@record
class FinishRun:
    """The events that end a run of a task. ``questions`` are its open questions as JSON."""

    lease: Lease
    events: Sequence[AgentEvent]
    bodies: Sequence[str]
    questions: str
    discards_inbox: bool


@record
class Take:
    """The stored form of the ``count`` oldest events of an inbox."""

    lease: Lease
    events: Sequence[AgentEvent]
    bodies: Sequence[str]
    count: int


@record
class Claim:
    """A claim of a task at rest, unchanged since ``row`` was read. Without an ``owner`` it waits in the queue.

    There it waits for the owner ``reserved``, unless that is empty.
    """

    row: TaskRow
    events: Sequence[AgentEvent]
    bodies: Sequence[str]
    owner: str | None
    seconds: float
    limits: UserLimits
    reserved: str = ""


@record
class TakeOver:
    """A claim of a task whose owner is gone."""

    row: TaskRow
    owner: str
    seconds: float


@record
class Renew:
    """Leases that are extended by ``seconds``."""

    leases: Sequence[Lease]
    seconds: float


@record
class Release:
    """Leases that are given up."""

    leases: Sequence[Lease]


TaskWrite: TypeAlias = Create | Append | FinishRun | Take | Claim | TakeOver | Renew | Release
"""A write whose result depends on the rows of its tasks, and on the facts of its group."""


def tasks_of(write: TaskWrite) -> Sequence[str]:
    """Return the ids of the tasks that a write reads or changes."""
    match write:
        case Create():
            return (write.task.task_id,)
        case Append() | FinishRun() | Take():
            return (write.lease.task_id,)
        case Claim() | TakeOver():
            return (write.row.task_id,)
        case Renew() | Release():
            return [lease.task_id for lease in write.leases]
        case _:
            assert_never(write)


def is_request(write: TaskWrite) -> bool:
    """Return whether a client waits for a write, and can ask again: it fails at once while the database is away."""
    return isinstance(write, Create | Claim)
