"""How soon a server is listed anew that says that its offer changed: later and later where it says so without end.

Pure; the time is given.
"""

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 30.0
CALM_SHARE = 10
"""How many times as long as changes were gathered a server must be quiet to count as calm again."""


class RelistBackoff:
    """How long changes are gathered before the server is asked what they are."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS
        self._until: float | None = None

    def seconds(self, now: float) -> float:
        """For changes that the server tells of at `now`."""
        is_calm = self._until is None or now - self._until > CALM_SHARE * self._seconds
        self._seconds = FIRST_SECONDS if is_calm else min(2 * self._seconds, LONGEST_SECONDS)
        self._until = now + self._seconds
        return self._seconds
