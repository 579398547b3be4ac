"""Where news of tasks are sent, as the journal keeps it: each target a cursor over its task's state changes.

A target remembers the number of the last event that arrived there; what comes after is still to be sent, whatever
happens to a process. Deliberately not here: who may set a target, and how news are written and sent
(``isthmus.a2a.push.delivery``).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from isthmus.client import Delivery, PushTarget


class PushState(StrEnum):
    """Whether news are still sent to a target."""

    ACTIVE = "active"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True)
class PushRow:
    """A target of a task. ``wire_name`` and ``uri`` say how its subscriber reads.

    ``seq`` is the last event that arrived. ``attempts`` have failed since, the last one with ``error``; the next one
    is not made before ``next_attempt`` (Unix seconds). ``owner`` is who sends to it just now.
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
        """What tells it from all others."""
        return self.task_id, self.target.id


class PushJournal(Protocol):
    """The targets of all tasks. All methods raise :class:`~isthmus.journal.base.JournalError`."""

    on_change: Callable[[], None] | None
    """Called when there may be something to send: on the event loop, after the commit."""

    def add(self, row: PushRow, limit: int) -> Awaitable[None]:
        """Add a target, or replace the one of its id: that is active again, and its cursor stays.

        Raises:
            LimitReached: the task has ``limit`` others already.
        """
        ...

    def remove(self, task_id: str, push_id: str) -> Awaitable[None]:
        """Forget a target and its secrets; one that is not there is no error."""
        ...

    def claim(self, row: PushRow, owner: str) -> Awaitable[bool]:
        """Begin to send to a target; False when it is gone, given up, replaced, or another owner sends to it."""
        ...

    def delivered(self, row: PushRow, owner: str, seq: int) -> Awaitable[None]:
        """Return the news up to event ``seq`` have arrived; lets go of the target."""
        ...

    def failed(self, row: PushRow, owner: str, error: str, next_attempt: float | None) -> Awaitable[None]:
        """Return an attempt has failed; None gives the target up. Lets go of it."""
        ...

    def release(self, owners: Sequence[str]) -> Awaitable[None]:
        """Let go of what these owners, which are gone, were sending."""
        ...

    async def of_task(self, task_id: str) -> Sequence[PushRow]:
        """All targets of a task, oldest first."""
        ...

    async def owners(self) -> Sequence[str]:
        """Who sends now."""
        ...

    async def behind(self, limit: int, since: float = 0, owner: str | None = None) -> Sequence[tuple[PushRow, int]]:
        """Active targets whose tasks have events after their cursor, with the number of the last event.

        Those that nobody but ``owner`` sends to now; the one that is to be tried soonest first. Of the targets that
        wait for no attempt only those whose task changed at ``since`` (Unix seconds) or later: what is older was told.
        """
        ...

    async def has_active(self) -> bool:
        """Return whether there is any target to watch for."""
        ...

    async def next_change(self, task_id: str, after: int) -> Delivery | None:
        """Return the first state change of a task after event ``after``."""
        ...
