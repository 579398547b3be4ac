"""The address at which a program says that it listens for HTTP, though it was started to speak on its streams. Pure."""

import re
from collections.abc import Iterable

_URL = re.compile(
    r"https?://(?P<host>localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?::(?P<port>\d{1,5}))?(?P<path>/[\w./-]{0,100})?",
    re.IGNORECASE,
)
_PORT = re.compile(r"\b(?:listen|running|serving|started)\w*\b.{0,60}\bport\W{0,3}(?P<port>\d{2,5})\b", re.IGNORECASE)
_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - as servers print it


def listening_at(lines: Iterable[str]) -> str | None:
    """Return the URL on this machine that a server's output names; None if it names neither one nor a port."""
    for line in lines:
        if (found := _URL.search(line)) is not None:
            host = "localhost" if found["host"] in _EVERYWHERE else found["host"]
            return f"http://{host}{':' + found['port'] if found['port'] else ''}{found['path'] or ''}".rstrip("./")
    for line in lines:
        if (found := _PORT.search(line)) is not None:
            return f"http://localhost:{found['port']}"
    return None
