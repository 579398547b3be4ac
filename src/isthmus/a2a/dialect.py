"""The port Dialect: a variant of an A2A version, with a wire and perhaps HTTP paths of its own.

A dialect is known in its own folder and in the list of :mod:`isthmus.a2a.wires`.
"""

from typing import Protocol

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.http.sse import OpenStreams
from isthmus.a2a.wire import Call, Caller, Wire


class Dialect(Protocol):
    """A variant of an A2A version that some clients speak; every request is offered to it before the version's wire."""

    wire: Wire
    """Wire that reads and answers the requests of these clients."""

    def claims(self, call: Call) -> bool:
        """Return whether a client of the dialect sent a request, judged by its metadata or its task's opening."""
        ...

    def methods_of(self, path: str) -> tuple[str, ...]:
        """Return the HTTP methods of a path that the dialect has beside JSON-RPC; none for another path."""
        ...

    def routes(self, options: ServerOptions, streams: OpenStreams) -> "DialectRoutes":
        """Return what answers the requests to these paths; called at the first of them."""
        ...


class DialectRoutes(Protocol):
    """The HTTP paths of a dialect beside JSON-RPC."""

    async def answer(self, http: HttpRequest, body: bytes, caller: Caller) -> Response:
        """Perform a request whose method and path the dialect has; a failure is a response."""
        ...
