"""Limits of listeners, and of this process's open files, among which every connection counts."""

import sys
from contextlib import suppress

from isthmus.record import record

HIGHEST_LIMIT = 65_536
"""Highest limit that is set. Child processes inherit the limit, and some of them try every number below it."""
MACOS_LIMIT = 10_240
"""OPEN_MAX of macOS, which refuses higher limits even if the hard limit is unlimited."""
WINDOWS_LIMIT = 2_048
"""Limit on Windows, which sets none itself; it bounds the memory for connections."""


@record(kw_only=True)
class ListenerLimits:
    """Limits of the connections of one listener."""

    descriptor_share: float
    """Maximum share (0 to 1) of the descriptors of this process."""
    head_seconds: float
    """Maximum time in seconds for the head of a request, or a TLS record, from the connection or its first byte on."""
    look_seconds: float = 1.0
    """Maximum interval in seconds between looks at silent connections."""
    maximum_unproven: int = 1024
    """Maximum number of connections without a token, of each kind (silent, speaking), however many descriptors there
    are."""
    defer_seconds: int = 30
    """Seconds for which Linux holds back a connection without a byte, so that one with a request overtakes it."""
    pause_seconds: float = 0.1
    """Pause of accepting in seconds when descriptors have run out."""


@record(kw_only=True)
class ServerLimits(ListenerLimits):
    """Limits of one HTTP server."""

    grace_seconds: float
    """Maximum wait in seconds at the end for answers that are being sent."""
    concurrency: int | None = None
    """Maximum number of connections and requests together; None for no limit."""


def descriptor_limit() -> int:
    """Return the maximum number of files that this process may have open."""
    if sys.platform == "win32":
        return WINDOWS_LIMIT
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HIGHEST_LIMIT if soft == resource.RLIM_INFINITY else min(soft, HIGHEST_LIMIT)


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one, within :data:`HIGHEST_LIMIT`; for programs that listen."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HIGHEST_LIMIT if hard == resource.RLIM_INFINITY else min(hard, HIGHEST_LIMIT)
    for limit in (wanted, min(wanted, MACOS_LIMIT)):
        if soft == resource.RLIM_INFINITY or soft >= limit:
            return
        with suppress(OSError, ValueError):  # the system allows less than it reports
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return
