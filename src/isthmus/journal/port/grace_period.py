"""The rule for leases that ran out while the journal was away: how long a process leaves them to their owners. No I/O.

While nobody reaches the journal, nobody renews a lease. Afterwards the processes reach it one after the other.
Until an owner has had the time of a lease to renew its lease, one that ran out says nothing about the owner.
"""


class GracePeriod:
    """The time for which a process has reached the journal without a break.

    Leases last ``lease_seconds``. The journal was away also if more than ``gap_seconds`` were between two answers, as
    after a network that passed nothing on, or when this process was stopped. Times are monotonic seconds.
    """

    def __init__(self, lease_seconds: float, gap_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._gap_seconds = gap_seconds
        self._last = 0.0
        self.since: float | None = None
        """The time of the first answer after the last break; None while the journal is away."""

    def reached(self, now: float) -> None:
        """Note an answer of the journal."""
        if self.since is None or now - self._last > self._gap_seconds:
            self.since = now
        self._last = now

    def assume(self, now: float) -> None:
        """Take the journal as having been there for a whole lease."""
        self.since = now - self._lease_seconds
        self._last = now

    def lost(self) -> None:
        """Note that the journal is away."""
        self.since = None

    def has_waited(self, now: float) -> bool:
        """Return whether the journal has been there for a whole lease, so that an old lease tells of its owner."""
        if self.since is None or now - self._last > self._gap_seconds:
            return False
        return now - self.since >= self._lease_seconds
