"""The locks of other processes, as seen at one look after the other, and what follows for their owners. No I/O.

Each process holds a lock while it is connected. A free lock is that of a process which has ended, or which has not
reached the database again after that was away.
"""

import math
from collections.abc import Collection, Mapping

SKEW_SECONDS = 0.3
"""Maximum time in seconds by which the times of two processes differ, as they measure the database's clock."""


class LocksSeen:
    """The locks of the others, at the looks since this process has reached the database: ``since`` (monotonic s)."""

    def __init__(self, since: float = math.inf) -> None:
        self._since = since
        self._looked_at = -math.inf
        self._seen: Mapping[str, bool] | None = None
        self._free_since: dict[str, float] = {}
        self._held: set[str] = set()
        """Owners whose lock was held at any look."""
        self._come: set[str] = set()
        """Owners who registered, or took their lock, between two looks."""

    @property
    def missing(self) -> Collection[str]:
        """Owners whose lock was free at two looks in a row, and is."""
        return [owner for owner, first in self._free_since.items() if first != self._looked_at]

    def take(self, seen: Mapping[str, bool], now: float) -> Collection[str]:
        """Take what a look found: whether the lock of each owner is held; return those who are missing from now on."""
        before = set(self.missing)
        held = {owner for owner, is_held in seen.items() if is_held}
        if self._seen is not None:
            self._come |= {owner for owner in held if not self._seen.get(owner)} | (seen.keys() - self._seen.keys())
        self._held |= held
        self._seen, self._looked_at = seen, now
        self._free_since = {owner: self._free_since.get(owner, now) for owner in seen if owner not in held}
        return set(self.missing) - before

    def is_gone(self, owner: str, heard_at: float, *, has_waited: bool) -> bool:
        """Return whether an owner has ended, who wrote to the journal last at ``heard_at`` (monotonic seconds).

        After a whole lease (``has_waited``) a free lock is enough. Before, its owner must have been connected since
        this process is, and not be connected any more.
        """
        if owner not in self.missing or heard_at > self._free_since[owner] + SKEW_SECONDS:
            return False  # One that writes without its lock lives.
        was_here = owner in self._come or (owner in self._held and heard_at > self._since + SKEW_SECONDS)
        return was_here or has_waited
