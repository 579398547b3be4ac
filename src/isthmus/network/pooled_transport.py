"""A transport of httpx that looks quickly whether the server has closed its idle connections.

The pool asks each idle connection before and after each request. The standard answer first collects all that is known
of the socket, its addresses included; with twenty connections that costs more than the rest of the request. Here the
system is asked once about all connections, and only before a request.
"""

import select
import ssl
from typing import TYPE_CHECKING, Any, Protocol

import httpcore2
import httpx2
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from httpcore2 import SOCKET_OPTION


def pooled_transport(verify: ssl.SSLContext, limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    """Return a transport for connections without a proxy, to whose certificates ``verify`` gives the trust."""
    return _PooledTransport(verify, limits)


class _PooledTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, verify: ssl.SSLContext, limits: httpx2.Limits) -> None:
        super().__init__(verify=verify, trust_env=False, limits=limits)
        self._pool = _Pool(verify, limits)


class _Pool(httpcore2.AsyncConnectionPool):
    def __init__(self, verify: ssl.SSLContext, limits: httpx2.Limits) -> None:
        self._sockets = _Sockets()
        super().__init__(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Backend(self._sockets),
        )

    @override
    def _assign_requests_to_connections(self) -> list[httpcore2.AsyncConnectionInterface]:
        # After a request no connection is chosen, so whether one can be used is looked at later.
        is_choosing = any(request.is_queued() for request in self._requests)
        self._sockets.begin(is_choosing=is_choosing)
        try:
            return super()._assign_requests_to_connections()
        finally:
            self._sockets.end()


class _Socket(Protocol):
    def fileno(self) -> int: ...


class _Sockets:
    """The sockets of a pool, and those that have data or their end to read."""

    def __init__(self) -> None:
        self._all: set[_Socket] = set()
        self._readable: AbstractSet[int] | None = None
        """Descriptors with something to read, while the pool assigns its requests."""
        self._is_assigning = False

    def add(self, connection: _Socket) -> None:
        """Take a socket; it is forgotten once it is closed."""
        self._all.add(connection)

    def begin(self, *, is_choosing: bool) -> None:
        """Let the answers hold up to :meth:`end`; without ``is_choosing`` no open socket has anything to read."""
        self._is_assigning = True
        self._readable = None if is_choosing else frozenset()

    def end(self) -> None:
        """Look again for each question."""
        self._is_assigning = False
        self._readable = None

    def is_readable(self, connection: _Socket) -> bool:
        """Return whether a socket has data or its end to read; True if it is closed."""
        descriptor = connection.fileno()
        if descriptor < 0:
            return True
        readable = self._readable
        if readable is None:
            readable = self._look()
            if self._is_assigning:
                self._readable = readable
        return descriptor in readable

    def _look(self) -> "AbstractSet[int]":
        poll = select.poll()
        closed: list[_Socket] = []
        for each in self._all:
            if (descriptor := each.fileno()) < 0:
                closed.append(each)
            else:
                poll.register(descriptor, select.POLLIN)
        self._all.difference_update(closed)
        return {descriptor for descriptor, _ in poll.poll(0)}


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, sockets: _Sockets) -> None:
        self._backend: Any = httpcore2.AnyIOBackend()
        self._sockets = sockets

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: "Iterable[SOCKET_OPTION] | None" = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        return _Stream(stream, self._sockets)

    @override
    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    """A stream that keeps its socket at hand."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, sockets: _Sockets) -> None:
        self._stream = stream
        self._sockets = sockets
        self._socket: _Socket | None = stream.get_extra_info("socket") if hasattr(select, "poll") else None
        if self._socket is not None:
            sockets.add(self._socket)
        self.read = stream.read
        self.write = stream.write
        self.aclose = stream.aclose

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._sockets)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._socket is not None:
            return self._sockets.is_readable(self._socket)
        return self._stream.get_extra_info(info)
