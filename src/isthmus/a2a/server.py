"""The A2A server as an ASGI application: any AgentClient, served as JSON-RPC and event streams at ``/``.

A thin shell: it refuses on the headers alone, reads bounded bodies and serves the public card; the rest is
:mod:`isthmus.a2a.endpoint`. A client that leaves never stops a task. Deliberately not here: sockets and signals
(:mod:`isthmus.a2a.listen`), and what the agent does.
"""

import asyncio
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from isthmus.a2a.auth import Gate, Refusal
from isthmus.a2a.card import PATHS, agent_card
from isthmus.a2a.endpoint import JsonRpcEndpoint, json_response
from isthmus.a2a.json_text import encode
from isthmus.a2a.options import ServerOptions
from isthmus.client import AgentClient

HEALTH = "/healthz"


def application(agent: AgentClient, options: ServerOptions) -> "Application":
    """The ASGI application that serves ``agent``; it does not close it."""
    return Application(agent, options)


class Application:
    """The ASGI application; made by :func:`application`."""

    def __init__(self, agent: AgentClient, options: ServerOptions) -> None:
        self._options = options
        public = urlsplit(options.public_url).hostname if options.public_url is not None else None
        names = [*options.hosts, *([public] if public is not None else [])]
        self._gate = Gate(options.token, frozenset(name.lower() for name in names))
        self._endpoint = JsonRpcEndpoint(agent, options)

    @property
    def open_streams(self) -> int:
        """How many answers are under way that wait for a task."""
        return len(self._endpoint.streams)

    def close_streams(self) -> None:
        """End every stream properly, because the server stops; their tasks go on."""
        self._endpoint.streams.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the ASGI server."""
        if scope["type"] == "http":
            try:
                response = await self._respond(HttpRequest(scope, receive))
            except ClientDisconnect:
                return
            await response(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.close_streams()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, request: HttpRequest) -> Response:
        headers = request.headers
        path: str = request.scope["path"]
        public = path in PATHS or path == HEALTH
        refusal = self._gate.refuse_origin(headers.get("host"), headers.get("origin"))
        if refusal is None and not public:
            refusal = self._gate.refuse_token(headers.get("authorization"))
        if refusal is None:
            refusal = _refuse_route(request.method, path, public)
        if refusal is not None:
            return _refused(refusal)
        if path == HEALTH:
            return json_response(encode({"status": "ok"}))
        if public:
            url = self._options.public_url or f"{request.url.scheme}://{headers['host']}/"
            return json_response(encode(agent_card(url)))
        body = await self._body(request)
        return _refused(body) if isinstance(body, Refusal) else await self._endpoint.answer(request, body)

    async def _body(self, request: HttpRequest) -> bytes | Refusal:
        limit = self._options.body_limit
        # The connection stays: closed while the client still writes, it would lose the answer.
        too_large = Refusal(413, f"the request is larger than {limit} bytes", {})
        stated = request.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > limit:
            return too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._options.body_deadline):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        return too_large
        except TimeoutError:
            message = f"the request did not arrive within {self._options.body_deadline:g} s"
            return Refusal(408, message, {"Connection": "close"})
        return bytes(body)


def _refuse_route(method: str, path: str, public: bool) -> Refusal | None:
    if not public and path != "/":
        return Refusal(404, "not found; JSON-RPC is served at /", {})
    allowed = ("GET", "HEAD") if public else ("POST",)
    if method not in allowed:
        return Refusal(405, f"expected {' or '.join(allowed)}", {"Allow": ", ".join(allowed)})
    return None


def _refused(refusal: Refusal) -> Response:
    return json_response(encode({"error": refusal.message}), refusal.status, refusal.headers)
