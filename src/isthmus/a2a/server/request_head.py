"""Closes connections whose next request does not come: uvicorn waits for the head of a request without end.

Deliberately not here: the body of a request, which the application waits for (:mod:`isthmus.a2a.server.application`),
and idle connections between requests, which uvicorn closes.
"""

import asyncio

from isthmus.a2a.server.gathering import GatheringProtocol
from isthmus.listeners.guest import GuestProtocol
from isthmus.listeners.refusal import RefusingOnceProtocol

HEAD_SECONDS = 30.0
"""How long the head of a request may take, from the connection or its first byte on."""


class HeadDeadlineProtocol(GuestProtocol, RefusingOnceProtocol, GatheringProtocol):
    """uvicorn's HTTP protocol with that deadline; also for what a client still sends after its answer."""

    _connection: asyncio.BaseTransport
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :meth:`asyncio.BaseProtocol.connection_made`."""
        super().connection_made(transport)
        self._connection = transport
        self._watch()

    def data_received(self, data: bytes) -> None:
        """See :meth:`asyncio.Protocol.data_received`."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :meth:`asyncio.BaseProtocol.connection_lost`."""
        super().connection_lost(exc)
        self._stop_watching()

    def _watch(self) -> None:
        # The cycle is uvicorn's request under way; there is none before the first.
        cycle = getattr(self, "cycle", None)
        if cycle is not None and not cycle.response_complete:
            self._stop_watching()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._connection.close)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
