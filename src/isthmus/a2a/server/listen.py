"""The A2A server on a socket: bound before it runs, stopped by signals with every stream ended properly.

A thin shell around uvicorn; it prints nothing. Deliberately not here: what is served
(:mod:`isthmus.a2a.server.application`).
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn

from isthmus.a2a.server import request_head
from isthmus.a2a.server.application import Application
from isthmus.errors import IsthmusError
from isthmus.listeners import http
from isthmus.listeners.listener import BACKLOG, Listener
from isthmus.runtime.server_end import end_connections

log = logging.getLogger(__name__)

DESCRIPTOR_SHARE = 0.75
"""Share of this process's descriptors for connections; the rest is for the journal, commands and MCP servers."""

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
        listener.listen(BACKLOG)  # from now on clients may connect; they wait until the server runs
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ListenError(
                f"port {port} on {host} is already in use: stop what listens there, or choose another port (0: any)"
            ) from error
        raise ListenError(f"cannot listen on host {host!r}, port {port}: {error.strerror}") from error
    return listener


def url_of(listener: socket.socket, *, is_encrypted: bool = False) -> str:
    """The URL that a bound socket is reached at."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if is_encrypted else "http"
    return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"


def is_loopback(listener: socket.socket) -> bool:
    """Whether a bound socket is reached from this machine alone."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


@dataclass(frozen=True, slots=True)
class Certificate:
    """The PEM files of a server's certificate, with those of its issuers after it, and of its private key."""

    file: Path
    key_file: Path

    def stamp(self) -> tuple[int, ...]:
        """What is another number when one of the files has changed; empty while one cannot be looked at."""
        try:
            return tuple(path.stat().st_mtime_ns for path in (self.file, self.key_file))
        except OSError:
            return ()

    def check(self) -> None:
        """Make sure that they can be used together.

        Raises:
            ListenError: they cannot.
        """
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.file, self.key_file, _no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ListenError(
                f"the certificate {self.file} and the key {self.key_file} cannot be used: {error}; expected PEM files"
                " that belong together, the key without a password"
            ) from error


def _no_password() -> str:
    raise ValueError("the key has a password")


class Server(uvicorn.Server):
    """Serves one application on one bound socket until a signal, or :meth:`stop`.

    ``grace`` is how many seconds connections have to end then; their streams are ended at once. With a ``certificate``
    it speaks TLS and nothing else. ``on_ready`` is called when it serves, and a signal ends it properly.
    """

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        grace: float = 5,
        certificate: Certificate | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        self._application = application
        application.port = int(listener.getsockname()[1])
        self._listener = listener
        self._stopping = asyncio.Event()
        self._on_ready = on_ready
        self._grace = max(1, grace)
        self._certificate = certificate
        self._stamp = () if certificate is None else certificate.stamp()
        self.url = url_of(listener, is_encrypted=certificate is not None)
        super().__init__(
            uvicorn.Config(
                application,
                http=request_head.HeadDeadlineProtocol,
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,
                ssl_certfile=None if certificate is None else certificate.file,
                ssl_keyfile=None if certificate is None else certificate.key_file,
            )
        )
        self.config.load()  # whoever is told that the server is ready may renew its certificate

    async def run_until_stopped(self) -> None:
        """Serve; returns after the last connection has ended."""
        await self.serve(sockets=[self._listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, then say so: who is told may end it at once."""
        silence = request_head.HEAD_SECONDS
        self.servers: list[Listener] = [  # pyright: ignore[reportIncompatibleVariableOverride] - of asyncio's kind
            await http.listening(self, listener, name=self.url, share=DESCRIPTOR_SHARE, silence=silence)
            for listener in sockets or ()
        ]
        self.started = True
        if self._on_ready is not None:
            self._on_ready()

    def stop(self) -> None:
        """Make :meth:`run_until_stopped` end; may be called from any task."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Tick once a second, which keeps the Date header right; uvicorn would tick ten times, and stop later."""
        while not await self.on_tick(0):
            self._application.look_after()
            self._renew_certificate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    def _renew_certificate(self) -> None:
        """Take a certificate that was renewed for the connections to come; one that cannot be used is not taken."""
        certificate, context = self._certificate, self.config.ssl
        if certificate is None or context is None or (stamp := certificate.stamp()) in (self._stamp, ()):
            return
        self._stamp = stamp
        try:
            certificate.check()
            context.load_cert_chain(certificate.file, certificate.key_file)
        except (ListenError, OSError) as error:
            log.error("the certificate stays the one before: %s", error)
        else:
            log.info("the certificate %s was renewed", certificate.file)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every stream first, then what is still answered."""
        self._application.close_streams()
        await end_connections(self, sockets or (), self._grace)

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
