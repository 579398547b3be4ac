"""Delays and number of attempts to connect to a server again, after which it is given up.

Pure; the time is given, in seconds.
"""

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Delay in seconds before each attempt to connect again after a loss; then the server is given up."""
STABLE_SECONDS = 30.0
"""A connection that held so long, or over which something was answered, makes the next loss the first one again."""


class ReconnectPolicy:
    """The attempts to connect to one server since it was last connected to in a stable way.

    ``again_seconds`` is how long one that was given up is left alone.
    """

    def __init__(self, again_seconds: float) -> None:
        self._again_seconds = again_seconds
        self._attempts = 0
        self._given_up_at: float | None = None

    @property
    def are_over(self) -> bool:
        """Whether it was tried as often as it is."""
        return self._attempts >= len(RETRY_SECONDS)

    def reset(self) -> None:
        """Begin anew: the next loss is the first one."""
        self._attempts = 0

    def held(self, seconds: float, *, has_answered: bool) -> None:
        """Note a connection that ended after so long; `has_answered`: something was answered over it."""
        if has_answered or seconds >= STABLE_SECONDS:
            self.reset()

    def next_seconds(self) -> float:
        """Return how long to wait before the next attempt, which is counted."""
        self._attempts += 1
        return RETRY_SECONDS[self._attempts - 1]

    def give_up(self, now: float) -> None:
        """Note that it is not tried again by itself."""
        self.reset()
        self._given_up_at = now

    def take_turn(self, now: float) -> bool:
        """Return whether it was given up long enough ago for somebody's wish to try it again; once for each time."""
        is_due = self._given_up_at is not None and now - self._given_up_at >= self._again_seconds
        if is_due:
            self._given_up_at = None
        return is_due
