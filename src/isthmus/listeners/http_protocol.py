"""Additions to uvicorn's HTTP protocols: a deadline for the head of a request, and at most one refusal of it.

uvicorn waits for a head without a deadline. It refuses an unreadable request even if the application is answering it or
has answered it; the application then fails with a traceback in the log, or a second answer follows the first. The
application sets the deadline for a body; uvicorn closes idle connections.
"""

import asyncio
from typing import Any, cast

import h11
from typing_extensions import override

from isthmus.listeners.connection_slot import SlotProtocol


class HttpProtocol(SlotProtocol):
    """Base class to be listed before uvicorn's protocol, the one on h11 or the one on httptools.

    ``head_seconds`` is the maximum time in seconds for the head of a request, from the connection or its first byte on.
    It is also the maximum for the rest of a request that was answered before its end.
    """

    head_seconds: float
    _connection: asyncio.BaseTransport
    _deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connection = transport
        self._watch_head()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._end_after_upgrade()
        self._watch_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watching()

    def send_400_response(self, msg: str) -> None:
        """Refuse an unreadable request, or close if an answer has begun, as if the client had left."""
        uvicorn = cast("Any", self)
        cycle = getattr(self, "cycle", None)  # uvicorn's current or last request; None before the first
        connection = getattr(self, "conn", None)  # h11's
        if connection is not None:
            can_answer = connection.our_state in (h11.IDLE, h11.SEND_RESPONSE)
        else:
            can_answer = cycle is None or cycle.response_complete or not cycle.response_started
        if can_answer:
            try:
                cast("Any", super()).send_400_response(msg)
            except h11.LocalProtocolError:  # the head of an answer to HEAD is sent, and h11 accepts no body for it
                uvicorn.transport.close()
        else:
            uvicorn.transport.close()
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()

    def _end_after_upgrade(self) -> None:
        """Close the connection after the answer to a request that offers another protocol, such as HTTP/2 (h2c).

        It is answered in HTTP/1.1, but httptools reads nothing behind it: the next request would wait forever.
        """
        parser = getattr(self, "parser", None)  # httptools'; h11 continues to read
        cycle = getattr(self, "cycle", None)
        if parser is not None and cycle is not None and parser.should_upgrade():
            cycle.keep_alive = False

    def _watch_head(self) -> None:
        cycle = getattr(self, "cycle", None)
        if cycle is not None and not cycle.response_complete:
            self._stop_watching()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(self.head_seconds, self._connection.close)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
