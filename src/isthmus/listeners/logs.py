"""Logs that strangers cannot fill, and that hold no secrets."""

import logging
import math
import time

LOG_SECONDS = 60.0
"""Minimum time in seconds between two lines about the same event."""


class Occurrence:
    """Logger of an event that strangers can repeat: first at once, then at most once in :data:`LOG_SECONDS`."""

    def __init__(self, log: logging.Logger, text: str) -> None:
        self._log = log
        self._text = text
        self._count = 0
        self._logged_at = -math.inf

    def note(self, detail: str = "") -> None:
        """Count the event, and log it with ``detail`` after the text unless the last line is too recent."""
        self._count += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_SECONDS:
            self._log.warning("%s%s (%d since the last such line)", self._text, detail, self._count)
            self._logged_at = now
            self._count = 0


def quiet_log() -> logging.Logger:
    """Return a silent logger for a connection or server of the websockets library.

    At its finer levels the library logs the headers of requests, including tokens.
    """
    quiet = logging.getLogger("isthmus.websockets")
    quiet.setLevel(logging.CRITICAL)
    return quiet
