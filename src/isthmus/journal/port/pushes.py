"""The push targets of tasks in the journal: each is a cursor over its task's state changes.

A target keeps the number of the last event delivered to it, so that later events are still sent after a crash or a
restart. Requests and their delivery: see ``isthmus.a2a.push``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from isthmus.client import Delivery, PushTarget
from isthmus.record import record


class PushState(StrEnum):
    """Whether events are still sent to a target."""

    ACTIVE = "active"
    GIVEN_UP = "given-up"


@record
class PushRow:
    """A push target of a task. ``wire_name`` and ``uri`` identify the dialect of its subscriber.

    ``seq`` is the last event delivered. ``attempts`` counts the failures since, the last one with ``error``; the next
    attempt is not made before ``next_attempt`` (Unix seconds). ``owner`` is the process that is sending to it.
    """

    task_id: str
    target: PushTarget
    wire_name: str
    uri: str | None
    seq: int
    state: PushState = PushState.ACTIVE
    attempts: int = 0
    next_attempt: float = 0
    owner: str | None = None
    error: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Key of this target among all targets."""
        return self.task_id, self.target.id


class PushJournal(Protocol):
    """The push targets of all tasks. All methods raise :class:`~isthmus.journal.port.base.JournalError`."""

    on_change: Callable[[], None] | None
    """Called on the event loop after a commit when there may be something to send."""

    def add(self, row: PushRow, limit: int) -> Awaitable[None]:
        """Add a target, or replace the one with the same id, which becomes active again and keeps its cursor.

        Raises:
            LimitReached: the task already has ``limit`` other targets.
        """
        ...

    def remove(self, task_id: str, push_id: str) -> Awaitable[None]:
        """Delete a target and its secrets, if it exists."""
        ...

    def claim(self, row: PushRow, owner: str) -> Awaitable[bool]:
        """Begin to send to a target; False when it is gone, given up or replaced, or another owner is sending to it."""
        ...

    def delivered(self, row: PushRow, owner: str, seq: int) -> Awaitable[None]:
        """Record that the events up to ``seq`` were delivered, and release the target."""
        ...

    def failed(self, row: PushRow, owner: str, error: str, next_attempt: float | None) -> Awaitable[None]:
        """Record a failed attempt and release the target; ``next_attempt`` (Unix seconds) of None gives it up."""
        ...

    def release(self, owners: Sequence[str]) -> Awaitable[None]:
        """Release the targets of these owners, which are gone."""
        ...

    async def of_task(self, task_id: str) -> Sequence[PushRow]:
        """Return all targets of a task, oldest first."""
        ...

    async def owners(self) -> Sequence[str]:
        """Return the owners that are sending."""
        ...

    async def behind(self, limit: int, since: float = 0, owner: str | None = None) -> Sequence[tuple[PushRow, int]]:
        """Return active targets whose tasks have events after their cursor, each with the number of the last event.

        Targets that another owner than ``owner`` is sending to are left out. The one with the earliest attempt comes
        first. Of targets without a planned attempt, only those whose task changed at ``since`` (Unix seconds) or later
        are returned: earlier changes were reported before.
        """
        ...

    async def counts(self) -> Mapping[PushState, int]:
        """Return the number of targets in each state that one has."""
        ...

    async def has_active(self) -> bool:
        """Return whether any target is active."""
        ...

    async def next_change(self, task_id: str, after: int) -> Delivery | None:
        """Return the first state change of a task after event ``after``."""
        ...
