"""Delays before a server is connected or listed again.

Pure: callers pass the time, in seconds.
"""

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Delay in seconds before each attempt to reconnect after a loss; after the last attempt the server is given up."""
STABLE_SECONDS = 30.0
"""Time in seconds after which a connection counts as stable, so that the next loss counts as the first one."""
FIRST_RELIST_SECONDS = 0.2
LONGEST_RELIST_SECONDS = 30.0
LEAST_AGAIN_SECONDS = 1.0
"""Minimum pause in seconds before a server that was given up is tried again because a turn needs it."""
RELIST_CALM_SHARE = 10
"""Time without changes after which the delay starts small again, as a multiple of the last delay."""


class ReconnectPolicy:
    """Counts the attempts to connect to one server since its last stable connection.

    ``longest_again``: the longest pause in seconds before a server that was given up is tried again. It is shorter if
    the failure took less time.
    """

    def __init__(self, longest_again: float) -> None:
        self._longest_again = longest_again
        self._attempts = 0
        self._again_at: float | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether no attempt is left."""
        return self._attempts >= len(RETRY_SECONDS)

    def reset(self) -> None:
        """Count the next loss as the first one."""
        self._attempts = 0

    def note_end(self, seconds: float, *, has_answered: bool) -> None:
        """Note that a connection ended after this time. It was also stable if the server answered a request."""
        if has_answered or seconds >= STABLE_SECONDS:
            self.reset()

    def next_seconds(self) -> float:
        """Count the next attempt, and return the delay in seconds before it."""
        self._attempts += 1
        return RETRY_SECONDS[self._attempts - 1]

    def give_up(self, now: float, took: float) -> None:
        """Note that the server, which took this time to fail, is not tried again until it is needed."""
        self.reset()
        self._again_at = now + min(self._longest_again, max(took, LEAST_AGAIN_SECONDS))

    def take_turn(self, now: float) -> bool:
        """Return whether a needed server may be tried again; true only once after each `give_up`."""
        is_due = self._again_at is not None and now >= self._again_at
        if is_due:
            self._again_at = None
        return is_due


class RelistBackoff:
    """Delay before a server that reports changes is listed again. It grows while changes keep coming."""

    def __init__(self) -> None:
        self._seconds = FIRST_RELIST_SECONDS
        self._until: float | None = None

    def seconds(self, now: float) -> float:
        """Return the delay in seconds for changes reported at `now`."""
        is_calm = self._until is None or now - self._until > RELIST_CALM_SHARE * self._seconds
        self._seconds = FIRST_RELIST_SECONDS if is_calm else min(2 * self._seconds, LONGEST_RELIST_SECONDS)
        self._until = now + self._seconds
        return self._seconds
