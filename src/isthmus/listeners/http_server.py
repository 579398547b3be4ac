"""uvicorn on a :class:`~isthmus.listeners.listener.Listener`, with a bound socket, limits and streams that end.

uvicorn alone waits for open responses before the application can end them, and wakes ten times a second, and strangers
could fill its log. The caller chooses the application and the meaning of signals.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Protocol, cast

import uvicorn

from isthmus.listeners.beginnings import http_beginning
from isthmus.listeners.connection_slot import ConnectionSlot, with_slot
from isthmus.listeners.http_protocol import HttpProtocol
from isthmus.listeners.limits import ServerLimits
from isthmus.listeners.listener import Listener
from isthmus.listeners.logs import Occurrence

KEEP_ALIVE_SECONDS = 75
"""Maximum time of an idle connection in seconds: longer than clients keep one, so that they close it, not we."""
TICK_SECONDS = 1.0
"""Interval in seconds at which the Date header is renewed; a stop does not wait for it."""
POLL_SECONDS = 0.005
"""Interval in seconds at which ending connections are checked."""
CANCEL_AFTER_SECONDS = 0.5
"""Maximum wait in seconds for the task of an answer that was cut off, before the task is cancelled."""

_WITHOUT_WEBSOCKETS = "No supported WebSocket library"
"""Beginning of uvicorn's advice to install one, which is not logged: none of our HTTP servers speaks WebSockets."""


class HttpApplication(Protocol):
    """An ASGI application whose streams can be ended."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        ...

    def close_streams(self) -> None:
        """End every stream properly."""
        ...


class HttpServer(uvicorn.Server):
    """Server of an application on a bound socket until :meth:`stop`; ``listening`` is set once it listens.

    ``name`` is its name in the log. With the two files of a certificate it speaks only TLS.
    """

    def __init__(
        self,
        application: HttpApplication,
        listener: socket.socket,
        *,
        name: str,
        protocol: type[HttpProtocol],
        limits: ServerLimits,
        certificate_file: Path | None = None,
        key_file: Path | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=protocol,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=limits.concurrency,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                ssl_certfile=certificate_file,
                ssl_keyfile=key_file,
            )
        )
        self.listening = asyncio.Event()
        self._application = application
        self._listener = listener
        self._name = name
        self._limits = limits
        self._stopping = asyncio.Event()

    async def run_until_stopped(self) -> None:
        """Serve; return after the last connection has ended."""
        await self.serve(sockets=[self._listener])

    def stop(self) -> None:
        """End :meth:`run_until_stopped`; may be called from any task."""
        self.should_exit = True
        self._stopping.set()

    def do_periodic_work(self) -> None:
        """Do periodic work, every second; a subclass overrides it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture no signals: the caller handles them."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, then set ``listening``."""
        self.servers: list[Listener] = [  # pyright: ignore[reportIncompatibleVariableOverride] - of asyncio's kind
            Listener(
                listener,
                self._protocol,
                name=self._name,
                limits=self._limits,
                tls=self.config.ssl,
                read_beginning=http_beginning,
            )
            for listener in sockets or ()
        ]
        for accepting in self.servers:
            await accepting.start_serving()
        self.started = True
        self.listening.set()

    async def main_loop(self) -> None:
        """Do the periodic work until :meth:`stop`, which ends it at once."""
        while not await self.on_tick(0):
            self.do_periodic_work()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every stream, then wait for the other answers."""
        self._application.close_streams()
        await end_connections(self, sockets or (), self._limits.grace_seconds)

    def _protocol(self, slot: ConnectionSlot) -> HttpProtocol:
        made: Any = cast("Any", self.config.http_protocol_class)(
            config=self.config, server_state=self.server_state, app_state=with_slot(self.lifespan.state, slot)
        )
        made.logger = _stray_requests()
        made.head_seconds = self._limits.head_seconds
        return made


async def end_connections(server: uvicorn.Server, listeners: Iterable[socket.socket], seconds: float) -> None:
    """Stop accepting connections, and end each one after its answer; after ``seconds``, cut off the remaining ones.

    ``force_exit`` cuts off at once.
    """
    await _stop_accepting(server)
    for listener in listeners:
        listener.close()
    state = server.server_state
    ended: set[Any] = set()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not server.force_exit:
                for connection in state.connections - ended:
                    connection.shutdown()
                ended |= state.connections
                if not state.connections and not state.tasks:
                    break
                await asyncio.sleep(POLL_SECONDS)
    for connection in tuple(state.connections):
        connection.transport.abort()
    # An application should notice that its client is gone and end without an error; otherwise it is cancelled.
    if state.tasks:
        await asyncio.wait(tuple(state.tasks), timeout=CANCEL_AFTER_SECONDS)
    for task in tuple(state.tasks):
        task.cancel()


async def _stop_accepting(server: uvicorn.Server) -> None:
    """Close the listening sockets after connections being accepted were made: asyncio would leave those open."""
    loop = asyncio.get_running_loop()
    for accepting in server.servers:
        for listener in accepting.sockets:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # an event loop of another kind
                loop.remove_reader(listener)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for accepting in server.servers:
        accepting.close()


class _OncePerMinute(logging.Filter):
    """Filter that replaces repeated warnings by one line per minute with their number, and passes errors."""

    def __init__(self) -> None:
        super().__init__()
        self._occurrences: dict[str, Occurrence] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether uvicorn's own line is logged; a warning is replaced by a line with its count."""
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        if not text.startswith(_WITHOUT_WEBSOCKETS):
            parent = logging.getLogger("uvicorn.error")
            self._occurrences.setdefault(text, Occurrence(parent, text)).note()
        return False


def _stray_requests() -> logging.Logger:
    """Return uvicorn's log behind a filter, because uvicorn warns of each request that it cannot read."""
    log = logging.getLogger("uvicorn.error.strangers")
    if not log.filters:
        log.setLevel(logging.WARNING)
        log.addFilter(_OncePerMinute())
    return log
