"""A transport of httpx that looks quickly whether the server has closed its idle connections.

The pool asks each idle connection before and after each request. The standard answer first collects all that is known
of the socket, its addresses included; with twenty connections that costs more than the rest of the request.
"""

import select
import ssl
from typing import TYPE_CHECKING, Any, Protocol

import httpcore2
import httpx2
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable

    from httpcore2 import SOCKET_OPTION


def pooled_transport(verify: ssl.SSLContext, limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    """Return a transport for connections without a proxy, to whose certificates ``verify`` gives the trust."""
    return _PooledTransport(verify, limits)


class _PooledTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, verify: ssl.SSLContext, limits: httpx2.Limits) -> None:
        super().__init__(verify=verify, trust_env=False, limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Backend(),
        )


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self) -> None:
        self._backend: Any = httpcore2.AnyIOBackend()

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: "Iterable[SOCKET_OPTION] | None" = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._backend.connect_tcp(host, port, timeout, local_address, socket_options))

    @override
    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class _Socket(Protocol):
    def fileno(self) -> int: ...


class _Stream(httpcore2.AsyncNetworkStream):
    """A stream that keeps its socket at hand."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._socket: _Socket | None = stream.get_extra_info("socket")
        self.read = stream.read
        self.write = stream.write
        self.aclose = stream.aclose

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._socket is not None and hasattr(select, "poll"):
            return _is_readable(self._socket)
        return self._stream.get_extra_info(info)


def _is_readable(connection: _Socket) -> bool:
    """Return whether a socket has data or its end to read; True if it is closed."""
    descriptor = connection.fileno()
    if descriptor < 0:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
