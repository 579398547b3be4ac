"""The header Retry-After of an HTTP response. Pure."""

import email.utils
import re
from datetime import UTC


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Return the requested wait in seconds, from a number of seconds or a date; None if there is none.

    `now` is in seconds since the epoch.
    """
    seconds = plain_number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)


def plain_number(value: str | None) -> float | None:
    """Return a number of at most twelve digits before the point; None for any other text."""
    if value is None or not re.fullmatch(r"\s*\d{1,12}(?:\.\d+)?\s*", value):
        return None
    return float(value)
