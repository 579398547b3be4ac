"""The rule by which a process takes over the tasks of others, and in words why.

A process that has ended is seen by its number or its lock. One that hangs or is cut off is known by its lease alone,
which says nothing after the journal was away: see :mod:`isthmus.journal.port.grace_period`.
"""

import time
from collections.abc import Callable, Sequence

from isthmus.agent.session.interruption import PROCESS_ENDED, UNRECORDED, taken_over
from isthmus.journal.port.base import Journal, JournalError
from isthmus.journal.port.grace_period import GracePeriod
from isthmus.journal.port.lease_owner import is_alive
from isthmus.journal.port.task_rows import ClaimedTask, TaskRow


class TakeOverRule:
    """The rule for the process ``owner``. Leases last ``lease_seconds``; ``clock`` returns monotonic seconds."""

    def __init__(
        self, journal: Journal, owner: str, lease_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._journal = journal
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._grace = GracePeriod(lease_seconds, lease_seconds / 2)
        self._reached_at: float | None = None
        """Time of the last answer by the journal's clock, which goes on while the machine sleeps."""

    async def begin(self) -> None:
        """Find out, at the start, whether processes that live on this machine may have missed the time of a lease.

        Raises JournalError.
        """
        if not any(is_alive(owner) for owner in await self._others()):
            self._grace.assume(self._clock())
        self.reached()

    def reached(self) -> None:
        """Note that the journal has answered."""
        now, last = self._journal.now(), self._reached_at
        if last is not None and now - last > self._lease_seconds / 2:
            self._grace.lost()
        self._reached_at = now
        self._grace.reached(self._clock())

    def failed(self, error: Exception) -> None:
        """Note an error, which may be the journal's."""
        if isinstance(error, JournalError):
            self._grace.lost()

    def is_in_grace(self) -> bool:
        """Return whether leases that ran out are left to their owners for now; to be called in any thread."""
        return not (self._grace.has_waited(self._clock()) and self._journal.replicas.has_waited)

    def is_abandoned(self, row: TaskRow, is_unwanted: bool = False) -> bool:
        """Return whether a task has an owner who does not work on it any more.

        One that is to be cancelled (``is_unwanted``) is left to nobody whose lease ran out: its work ends in any case.
        """
        if row.owner is None:
            return False
        if self._is_gone(row.owner, row.lease_until):
            return True
        return row.lease_until < self._journal.now() and (is_unwanted or not self.is_in_grace())

    async def gone(self) -> Sequence[str]:
        """Return the owners of tasks whose process has ended. Raises JournalError."""
        others = await self._others()
        return [owner for owner, until in others.items() if self._is_gone(owner, until)]

    def broken_off(self, taken: ClaimedTask) -> str:
        """Return why the work before on a task broke off, as a part of a sentence."""
        if (former := taken.former) is None or is_alive(former.owner) is False:
            return PROCESS_ENDED
        if former.owner == taken.lease.owner:
            return UNRECORDED
        # Both leases are of the same length: between their ends is the time between their beginnings.
        return taken_over(taken.row.lease_until - former.until)

    async def _others(self) -> dict[str, float]:
        """Return the other owners of tasks at work, and the end of their last lease."""
        owners = await self._journal.queue.owners()
        return {owner: until for owner, until in owners.items() if owner != self._owner}

    def _is_gone(self, owner: str, until: float) -> bool:
        silent = self._journal.now() - (until - self._lease_seconds)
        return self._journal.replicas.is_gone(owner, silent)
