"""The A2A server on a socket: bound before it runs, stopped by signals with every stream ended properly.

A thin shell around uvicorn; it prints nothing. Deliberately not here: what is served (:mod:`isthmus.a2a.server`).
"""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Generator
from types import FrameType

import uvicorn

from isthmus.a2a.request_head import HeadDeadlineProtocol
from isthmus.a2a.server import Application
from isthmus.errors import IsthmusError

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class ListenError(IsthmusError):
    """The address cannot be listened on."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free one.

    Raises:
        ListenError: the port is taken, or the host is none of this machine; names both.
    """
    if not 0 <= port <= 65535:
        raise ListenError(f"cannot listen on host {host!r}, port {port}: expected a port from 0 (any) to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol stated, asyncio sets TCP_NODELAY on what it accepts: events go out at once.
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ListenError(f"cannot listen on host {host!r}, port {port}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)  # from now on clients may connect; they wait until the server runs
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ListenError(
                f"port {port} on {host} is already in use: stop what listens there, or choose another port (0: any)"
            ) from error
        raise ListenError(f"cannot listen on host {host!r}, port {port}: {error.strerror}") from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL that a bound socket is reached at."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Server(uvicorn.Server):
    """Serves one application on one bound socket until a signal, or :meth:`stop`.

    ``grace`` is how many seconds connections have to end then; their streams are ended at once.
    """

    def __init__(self, application: Application, listener: socket.socket, *, grace: float = 5) -> None:
        self._application = application
        self._listener = listener
        self._stopping = asyncio.Event()
        self.url = url_of(listener)
        super().__init__(
            uvicorn.Config(
                application,
                http=HeadDeadlineProtocol,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=max(1, round(grace)),
            )
        )

    async def run_until_stopped(self) -> None:
        """Serve; returns after the last connection has ended."""
        await self.serve(sockets=[self._listener])

    def stop(self) -> None:
        """Make :meth:`run_until_stopped` end; may be called from any task."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Tick once a second, which keeps the Date header right; uvicorn would tick ten times, and stop later."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), 1)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every stream first: uvicorn waits for open responses before it tells the application anything."""
        self._application.close_streams()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop on signals, and give control back to the caller: uvicorn would raise them again and end the process."""
        loop = asyncio.get_running_loop()
        installed: list[int] = []
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread, or Windows
                loop.add_signal_handler(number, self.handle_exit, number, None)
                installed.append(number)
        try:
            yield
        finally:
            for number in installed:
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second signal does not wait for connections."""
        del sig, frame
        self.force_exit = self.should_exit
        self.stop()
