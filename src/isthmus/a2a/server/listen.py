"""The A2A server on a socket that is bound before the server runs. A signal stops it and ends every stream properly.

The application that it serves is :mod:`isthmus.a2a.server.application`.
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from types import FrameType

from isthmus.a2a.server.application import Application
from isthmus.errors import IsthmusError
from isthmus.listeners.gathering import GatheringProtocol
from isthmus.listeners.http_server import HttpServer
from isthmus.listeners.limits import ServerLimits
from isthmus.listeners.listener import BACKLOG
from isthmus.record import record

log = logging.getLogger(__name__)

LIMITS = ServerLimits(descriptor_share=0.75, head_seconds=30, grace_seconds=5)
"""Limits of a server; the other quarter of the descriptors is for the journal, commands and MCP servers."""

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class ListenError(IsthmusError):
    """The server cannot listen on an address, or not with a certificate."""


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one.

    Raises:
        ListenError: the port is taken, or the host is not one of this machine; the text names both.
    """
    if not 0 <= port <= 65535:
        raise ListenError(f"cannot listen on host {host!r}, port {port}: expected a port from 0 (any) to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # With an explicit protocol asyncio sets TCP_NODELAY on accepted connections, so that events are sent at once.
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
                f"port {port} on {host} is already in use: stop the program that uses it, or choose another port"
                " (0: any)"
            ) from error
        raise ListenError(f"cannot listen on host {host!r}, port {port}: {error.strerror}") from error
    return listener


def url_of(listener: socket.socket, *, is_encrypted: bool = False) -> str:
    """Return the URL of a bound socket."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if is_encrypted else "http"
    return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"


def is_loopback(listener: socket.socket) -> bool:
    """Return whether a bound socket can be reached only from this machine."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


@record
class Certificate:
    """PEM files of a server's certificate, with its issuers' certificates after it, and of its private key."""

    file: Path
    key_file: Path

    def stamp(self) -> tuple[int, ...]:
        """Return a value that changes with the files; it is empty while one of them cannot be accessed."""
        try:
            return tuple(path.stat().st_mtime_ns for path in (self.file, self.key_file))
        except OSError:
            return ()

    def check(self) -> None:
        """Check that certificate and key can be used together.

        Raises:
            ListenError: they cannot.
        """
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.file, self.key_file, _no_password)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ListenError(
                f"the certificate {self.file} and the key {self.key_file} cannot be used: {error}; expected matching"
                " PEM files, and a key without a password"
            ) from error


def _no_password() -> str:
    raise ValueError("the key has a password")


class A2AServer(HttpServer):
    """Server of one application on one bound socket until a signal or :meth:`stop`, which end its streams at once.

    With a ``certificate`` it speaks only TLS. ``on_ready`` is called once it serves and handles signals. SIGTERM waits
    for ``drain``, if given, before it stops the server, which serves meanwhile; another signal stops it at once.
    """

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        limits: ServerLimits = LIMITS,
        certificate: Certificate | None = None,
        on_ready: Callable[[], None] | None = None,
        drain: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        application.port = int(listener.getsockname()[1])
        self.url = url_of(listener, is_encrypted=certificate is not None)
        super().__init__(
            application,
            listener,
            name=self.url,
            protocol=GatheringProtocol,
            limits=limits,
            certificate_file=None if certificate is None else certificate.file,
            key_file=None if certificate is None else certificate.key_file,
        )
        self._agents = application
        self._on_ready = on_ready
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None
        self._certificate = certificate
        self._stamp = () if certificate is None else certificate.stamp()
        self.config.load()  # the certificate may be renewed as soon as the server is ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, then call ``on_ready``, which may stop the server at once."""
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready()

    def do_periodic_work(self) -> None:
        """End the streams of users whose token is no longer valid, and load a renewed certificate."""
        self._agents.close_invalid_streams()
        self._renew_certificate()

    def _renew_certificate(self) -> None:
        """Load a renewed certificate for new connections, unless it cannot be used."""
        certificate, context = self._certificate, self.config.ssl
        if certificate is None or context is None or (stamp := certificate.stamp()) in (self._stamp, ()):
            return
        self._stamp = stamp
        try:
            certificate.check()
            context.load_cert_chain(certificate.file, certificate.key_file)
        except (ListenError, OSError) as error:
            log.error("the previous certificate stays in use: %s", error)
        else:
            log.info("the certificate %s was renewed", certificate.file)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop on signals and return to the caller; uvicorn would raise them again, which ends the process."""
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
        del frame
        if sig == signal.SIGTERM and self._drain is not None and self._draining is None and not self.should_exit:
            log.info("no more work is begun; waiting for running tasks")
            self._draining = asyncio.create_task(self._drain_and_stop(self._drain), name="isthmus-drain")
            return
        self.force_exit = self.should_exit
        self.stop()

    async def _drain_and_stop(self, drain: Callable[[], Awaitable[None]]) -> None:
        try:
            await drain()
        finally:
            self.stop()
