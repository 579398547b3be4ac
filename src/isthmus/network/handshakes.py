"""Connections whose TLS handshake was cancelled, and which are closed then.

httpcore closes the connection after a handshake that failed or took too long, but leaves it open when the task that
waits for it is cancelled; the peer would wait until the garbage is collected.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpcore2
    import httpx2


class _Handshake:
    """Trace of a request; it knows the connection that was opened for it, until its handshake is over."""

    def __init__(self) -> None:
        self._opened: httpcore2.AsyncNetworkStream | None = None

    async def trace(self, event: str, details: Mapping[str, Any]) -> None:
        """Take an event of httpcore, as its request extension `trace` describes them."""
        match event.partition(".")[2]:
            case "connect_tcp.complete" | "connect_unix_socket.complete":
                self._opened = details["return_value"]
            case "start_tls.failed":
                if self._opened is not None:
                    await self._opened.aclose()
                self._opened = None
            case "start_tls.complete":
                self._opened = None
            case _:
                pass


async def close_cancelled_handshake(request: "httpx2.Request") -> None:
    """Close the connection of a request if its handshake is cancelled; a request hook of an httpx client."""
    request.extensions = {**request.extensions, "trace": _Handshake().trace}
