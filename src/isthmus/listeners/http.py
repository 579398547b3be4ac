"""uvicorn on a :class:`~isthmus.listeners.listener.Listener`, whose log strangers cannot fill.

Deliberately without an import of uvicorn: the servers in ``a2a`` and ``ide`` bring theirs.
"""

import logging
import socket
from typing import Any, Protocol

from isthmus.listeners.beginnings import http_beginning
from isthmus.listeners.guest import Guest, GuestProtocol, with_guest
from isthmus.listeners.listener import Listener
from isthmus.listeners.occurrence import Occurrence

_WITHOUT_WEBSOCKETS = "No supported WebSocket library"
"""The beginning of uvicorn's advice to install one; none of our HTTP servers speaks WebSockets."""


class HttpServer(Protocol):
    """What is used of a ``uvicorn.Server``."""

    @property
    def config(self) -> Any:
        """A loaded ``uvicorn.Config`` whose ``http`` is a GuestProtocol."""
        ...

    @property
    def server_state(self) -> Any:
        """Connections and tasks."""
        ...

    @property
    def lifespan(self) -> Any:
        """The application's ``state``."""
        ...


async def listening(
    server: HttpServer, listener: socket.socket, *, name: str, share: float, silence: float
) -> Listener:
    """Serve a bound socket by the protocol of a uvicorn server. For the arguments see Listener."""
    log = _stray_requests()

    def protocol(guest: Guest) -> GuestProtocol:
        made = server.config.http_protocol_class(
            config=server.config,
            server_state=server.server_state,
            app_state=with_guest(server.lifespan.state, guest),
        )
        made.logger = log
        return made

    accepting = Listener(
        listener,
        protocol,
        name=name,
        share=share,
        silence=silence,
        tls=server.config.ssl,
        read_beginning=http_beginning,
    )
    await accepting.start_serving()
    return accepting


class _OncePerMinute(logging.Filter):
    """Lets the same warning through once in a while; errors always."""

    def __init__(self) -> None:
        super().__init__()
        self._occurrences: dict[str, Occurrence] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether uvicorn's own line is logged: a warning is replaced by a line with its count."""
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        if not text.startswith(_WITHOUT_WEBSOCKETS):
            parent = logging.getLogger("uvicorn.error")
            self._occurrences.setdefault(text, Occurrence(parent, text)).note()
        return False


def _stray_requests() -> logging.Logger:
    """Return uvicorn's log behind a filter; uvicorn warns of each request that it cannot read."""
    log = logging.getLogger("uvicorn.error.strangers")
    if not log.filters:
        log.setLevel(logging.WARNING)
        log.addFilter(_OncePerMinute())
    return log
