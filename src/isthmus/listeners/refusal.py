"""One refusal for a request that cannot be read, also in the middle of its body.

uvicorn refuses it at any time, also while the application still answers or has answered: the application then fails,
with a traceback in the log for whoever sends a broken body, or a second answer stands behind the first.
"""

import asyncio
from typing import Any, cast

import h11


class RefusingOnceProtocol(asyncio.Protocol):
    """A base class for uvicorn's HTTP protocols, of h11 as of httptools, before the one that does the work."""

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read, unless an answer has begun; what the application answers is not sent any more."""
        uvicorn = cast("Any", self)
        cycle = getattr(self, "cycle", None)  # uvicorn's request under way, or the last one; None before the first
        connection = getattr(self, "conn", None)  # h11's
        if connection is not None:
            can_answer = connection.our_state in (h11.IDLE, h11.SEND_RESPONSE)
        else:
            can_answer = cycle is None or cycle.response_complete or not cycle.response_started
        if can_answer:
            try:
                cast("Any", super()).send_400_response(msg)
            except h11.LocalProtocolError:  # an answer to HEAD has no body: h11 takes none, and its head is sent
                uvicorn.transport.close()
        else:
            uvicorn.transport.close()
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
