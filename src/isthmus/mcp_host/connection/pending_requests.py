"""The requests of one server that are not answered yet.

A server that asks on and on, and never takes an answer, is held back, and what it asks beyond is passed over.
Deliberately not here: what is answered.
"""

import asyncio
import contextlib
import logging

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

MAXIMUM_REQUESTS = 50
"""Maximum number of requests of one server at the same time."""
_LOG = logging.getLogger("isthmus.mcp")


class UnansweredRequests:
    """The ids of the requests of a server, which is named for the log.

    ``patience_seconds`` is how long one too many is kept waiting for another one to be answered.
    """

    def __init__(self, server: str, patience_seconds: float = 0.5) -> None:
        self._patience_seconds = patience_seconds
        self._server = server
        self._ids: set[str | int] = set()
        self._answered = asyncio.Event()
        self._is_told = False

    def sent(self, message: JSONRPCMessage) -> None:
        """Note a message that the server has taken."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._free(message.id)

    async def admits(self, message: JSONRPCMessage) -> bool:
        """Return whether a message of the server is passed on; waits a little where it asks too much at a time."""
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
                self._tell()
                return False
        self._ids.add(message.id)
        return True

    def _free(self, key: object) -> None:
        if isinstance(key, str | int):
            self._ids.discard(key)
            self._answered.set()

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            _LOG.info(
                "MCP server %s: it has more than %d requests that wait for an answer; others are passed over",
                self._server,
                MAXIMUM_REQUESTS,
            )
