"""Limits of what listens for connections."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """Limits of the connections of one listener."""

    descriptor_share: float
    """Maximum share (0 to 1) of the descriptors of this process."""
    head_seconds: float
    """Maximum time for the head of a request, or for another beginning, from the connection or its first byte on."""
    look_seconds: float = 1.0
    """Maximum interval at which silent connections are looked at."""
    maximum_unproven: int = 1024
    """Maximum number of connections without a token, of each kind (silent, speaking), however many descriptors there
    are."""
    defer_seconds: int = 30
    """Time for which Linux holds back a connection that has sent nothing, so that one with a request overtakes it."""
    pause_seconds: float = 0.1
    """Pause of accepting when descriptors have run out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits(ListenerLimits):
    """Limits of one HTTP server."""

    grace_seconds: float
    """Maximum time for answers under way at the end."""
    concurrency: int | None = None
    """Maximum number of connections and requests together; None: no limit."""
