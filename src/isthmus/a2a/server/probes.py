"""Pages for programs that watch a server: whether it serves, whether it can take work, and its metrics.

/healthz and /readyz need no token, so an answer is short and says nothing else about the server. /metrics needs the
owner's token, or one that opens nothing else, unless it is open. What is on it is made elsewhere, and so is the answer
to whether the server is ready (:class:`isthmus.engine.readiness.Readiness`).
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.responses import Response

from isthmus.a2a.server.framing import json_response
from isthmus.encoding.json_text import encode
from isthmus.listeners.gate import bearer_token, same_secret
from isthmus.record import record

HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
DRAINING = "draining"

Ready: TypeAlias = Callable[[], Awaitable[str | None]]
"""Function that returns why the server cannot take work, as one word, or None; must be cheap and must not fail."""
_NOT_STORED = {"Cache-Control": "no-store"}


@record
class Metrics:
    """The page /metrics: ``text`` returns its content, of the type ``content_type``; must be cheap and must not fail.

    The owner reads it, and who has the ``token``; with ``is_open`` everybody who reaches the server.
    """

    text: Callable[[], Awaitable[bytes]]
    content_type: str
    token: str = ""
    is_open: bool = False

    def lets_in(self, authorization: str | None) -> bool:
        """Return whether the page is open to the sender of this header; the owner is let in besides."""
        given = bearer_token(authorization) if authorization is not None and self.token else None
        return self.is_open or (given is not None and same_secret(given, self.token))


class Probes:
    """The pages. Without ``ready`` the server can take work as long as it serves; ``metrics`` may be missing."""

    def __init__(self, ready: Ready | None = None, metrics: Metrics | None = None) -> None:
        self._ready = ready
        self._metrics = metrics

    def serves(self, path: str) -> bool:
        """Return whether requests for a path belong to them."""
        return path in (HEALTH, READY) or (path == METRICS and self._metrics is not None)

    def needs_owner(self, path: str, authorization: str | None) -> bool:
        """Return whether the sender of a request for one of the pages must be the owner."""
        return path == METRICS and self._metrics is not None and not self._metrics.lets_in(authorization)

    async def respond(self, path: str, *, is_closing: bool) -> Response:
        """Answer a request for one of the pages; ``is_closing``: the server ends its streams."""
        if path == METRICS and self._metrics is not None:
            return Response(await self._metrics.text(), 200, _NOT_STORED, self._metrics.content_type)
        if path == HEALTH:
            status = {"status": DRAINING if is_closing else "ok"}
            return json_response(encode(status), 503 if is_closing else 200, _NOT_STORED)
        reason = DRAINING if is_closing else await self._ready() if self._ready is not None else None
        if reason is None:
            return json_response(encode({"status": "ok"}), 200, _NOT_STORED)
        return json_response(encode({"status": "unavailable", "reason": reason}), 503, _NOT_STORED)
