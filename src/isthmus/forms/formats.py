"""The formats that a text of a form may have, and whether a text has one. Pure; nothing is looked up anywhere."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from urllib.parse import urlsplit

FORMATS: Mapping[str, str] = {
    "email": "an e-mail address",
    "uri": "a URI such as https://example.org",
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T08:30:00Z",
}
"""The formats that texts may have."""
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*")


def has_format(form: str, text: str) -> bool:
    """Return whether a text has one of the ``FORMATS``."""
    try:
        match form:
            case "email":
                return _EMAIL.fullmatch(text) is not None
            case "uri":
                parts = urlsplit(text)
                return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", text)
            case "date":
                return date.fromisoformat(text).isoformat() == text
            case _:
                return "T" in text.upper() and datetime.fromisoformat(text.upper()).tzinfo is not None
    except ValueError:
        return False
