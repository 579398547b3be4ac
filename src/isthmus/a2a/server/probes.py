"""Answers for programs that watch a server: whether it serves, and whether it can take work. They need no token.

An answer is short and says nothing about the server but that. What decides is a function, see
:class:`isthmus.engine.readiness.Readiness`.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.responses import Response

from isthmus.a2a.server.framing import json_response
from isthmus.encoding.json_text import encode

HEALTH = "/healthz"
READY = "/readyz"
DRAINING = "draining"

Ready: TypeAlias = Callable[[], Awaitable[str | None]]
"""Function that returns why the server cannot take work, as one word, or None; must be cheap and must not fail."""
_NOT_STORED = {"Cache-Control": "no-store"}


class Probes:
    """The pages /healthz and /readyz. Without ``ready`` the server can take work as long as it serves."""

    def __init__(self, ready: Ready | None = None) -> None:
        self._ready = ready

    def serves(self, path: str) -> bool:
        """Return whether requests for a path belong to them."""
        return path in (HEALTH, READY)

    async def respond(self, path: str, *, is_closing: bool) -> Response:
        """Answer a request for one of the pages; ``is_closing``: the server ends its streams."""
        if path == HEALTH:
            status = {"status": DRAINING if is_closing else "ok"}
            return json_response(encode(status), 503 if is_closing else 200, _NOT_STORED)
        reason = DRAINING if is_closing else await self._ready() if self._ready is not None else None
        if reason is None:
            return json_response(encode({"status": "ok"}), 200, _NOT_STORED)
        return json_response(encode({"status": "unavailable", "reason": reason}), 503, _NOT_STORED)
