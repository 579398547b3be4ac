"""uvicorn for the companion: a socket that is bound already, streams that end properly, signals left alone.

A stream that ends properly lets real clients come back by themselves after a restart; one that breaks off does not
(:mod:`isthmus.ide.gemini.close_delimited`). uvicorn waits for open responses before anything else could end them, and
wakes up ten times a second, hence :class:`Server`.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn

from isthmus.ide.gemini.close_delimited import CloseDelimitedProtocol
from isthmus.listeners import http
from isthmus.listeners.guest import GuestProtocol
from isthmus.listeners.listener import MAXIMUM_UNPROVEN, Listener
from isthmus.listeners.refusal import RefusingOnceProtocol
from isthmus.runtime.server_end import end_connections

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MAXIMUM_CONNECTIONS = 256
"""With a token."""
DESCRIPTOR_SHARE = 0.25
"""Share of this process's descriptors for the connections of one server."""
KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep idle connections, so that none sends a request into a connection that is being closed."""
TICK_SECONDS = 1.0
"""How often the Date header is renewed, and connections are looked at."""
SILENT_TICKS = 10
"""A connection that has not sent the head of a request after one to two times so many ticks is closed."""
GRACE_SECONDS = 2.0
"""How long answers may take at the end."""


class Endpoint(Protocol):
    """An ASGI application whose streams can be ended."""

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """One request."""
        ...

    def close(self) -> None:
        """End every stream."""
        ...


class HttpProtocol(GuestProtocol, RefusingOnceProtocol, CloseDelimitedProtocol):
    """uvicorn's HTTP protocol for the companion."""


class Server(uvicorn.Server):
    """Serves an endpoint on a bound socket until :meth:`stop`; ``listening`` is set once it listens.

    ``name`` is what the log calls it.
    """

    def __init__(self, endpoint: Endpoint, listener: socket.socket, name: str) -> None:
        super().__init__(
            uvicorn.Config(
                endpoint,
                http=HttpProtocol,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=MAXIMUM_CONNECTIONS + MAXIMUM_UNPROVEN,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._endpoint = endpoint
        self._listener = listener
        self._name = name
        self.listening = asyncio.Event()
        self._stopping = asyncio.Event()
        self._silent: set[object] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: whoever runs the server decides what a signal means."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then say so."""
        silence = SILENT_TICKS * TICK_SECONDS
        self.servers: list[Listener] = [  # pyright: ignore[reportIncompatibleVariableOverride] - of asyncio's kind
            await http.listening(self, listener, name=self._name, share=DESCRIPTOR_SHARE, silence=silence)
            for listener in sockets or ()
        ]
        self.started = True
        self.listening.set()

    async def run_until_stopped(self) -> None:
        """Serve until :meth:`stop`; returns when every connection is closed."""
        await self.serve([self._listener])

    def stop(self) -> None:
        """Make :meth:`run_until_stopped` end."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Tick until the stop, which is not waited for."""
        tick = 0
        while not await self.on_tick(tick):
            tick += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._stopping.wait()

    async def on_tick(self, counter: int) -> bool:
        """Close the connections that only take up room, besides what uvicorn does."""
        if counter % SILENT_TICKS == 0:
            silent = {connection for connection in self.server_state.connections if _is_silent(connection)}
            for connection in silent & self._silent:
                connection.transport.close()
            self._silent = set(silent)
        return await super().on_tick(0)  # which renews the Date header

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then what is still answered."""
        self._endpoint.close()
        await end_connections(self, sockets or (), GRACE_SECONDS)


def _is_silent(connection: Any) -> bool:
    """Whether no request has begun on it, or less than the head of another one.

    uvicorn's protocols have the current request, or the last, as ``cycle``. Behind an answer they wait for another one
    with a timer, and from its first byte on without.
    """
    if not hasattr(connection, "cycle"):
        return False
    cycle = connection.cycle
    return cycle is None or (cycle.response_complete and connection.timeout_keep_alive_task is None)
