"""The requests of one server that are not answered yet.

A server that sends requests without reading the answers is slowed down, and its requests over the limit are ignored.
"""

import asyncio
import contextlib
import logging

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

MAXIMUM_REQUESTS = 50
"""Maximum number of unanswered requests of one server."""
_LOG = logging.getLogger("isthmus.mcp")


class UnansweredRequests:
    """The ids of a server's unanswered requests. ``server`` is the name for the log.

    A request over the limit waits ``patience_seconds`` for an answer to another request; then it is ignored.
    """

    def __init__(self, server: str, patience_seconds: float = 0.5) -> None:
        self._patience_seconds = patience_seconds
        self._server = server
        self._ids: set[str | int] = set()
        self._answered = asyncio.Event()
        self._is_logged = False

    def sent(self, message: JSONRPCMessage) -> None:
        """Note a message that was sent to the server."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._free(message.id)

    async def admits(self, message: JSONRPCMessage) -> bool:
        """Return whether to pass on a message of the server. Wait a little if too many requests are unanswered."""
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._free((message.params or {}).get("requestId"))
        if not isinstance(message, JSONRPCRequest):
            return True
        if len(self._ids) >= MAXIMUM_REQUESTS:
            self._answered.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_seconds):
                    await self._answered.wait()
            if len(self._ids) >= MAXIMUM_REQUESTS:
                self._log_excess()
                return False
        self._ids.add(message.id)
        return True

    def _free(self, key: object) -> None:
        if isinstance(key, str | int):
            self._ids.discard(key)
            self._answered.set()

    def _log_excess(self) -> None:
        if not self._is_logged:
            self._is_logged = True
            _LOG.info(
                "MCP server %s: more than %d of its requests are unanswered; further requests are ignored",
                self._server,
                MAXIMUM_REQUESTS,
            )
