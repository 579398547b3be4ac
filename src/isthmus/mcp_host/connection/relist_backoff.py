"""Delay before a server is listed again after a change: longer and longer if it reports changes without end.

Pure; the time is given.
"""

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 30.0
CALM_SHARE = 10
"""Quiet time after which a server counts as calm again, as a multiple of the last delay."""


class RelistBackoff:
    """Delay in which changes are gathered before the server is listed."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS
        self._until: float | None = None

    def seconds(self, now: float) -> float:
        """Return the delay in seconds for changes reported at `now`."""
        is_calm = self._until is None or now - self._until > CALM_SHARE * self._seconds
        self._seconds = FIRST_SECONDS if is_calm else min(2 * self._seconds, LONGEST_SECONDS)
        self._until = now + self._seconds
        return self._seconds
