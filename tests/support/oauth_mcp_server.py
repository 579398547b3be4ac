"""An MCP server over HTTP and SSE that needs a login, with its authorization server beside it in the same process.

``log`` holds its requests, together with those of the authorization server.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from support.asgi_server import asgi_server
from support.oauth_authorization import AuthorizationServer

WHOAMI: dict[str, Any] = {
    "name": "whoami",
    "description": "Says it.",
    "inputSchema": {"type": "object", "properties": {}},
}


@dataclass(slots=True)
class OAuthMcpServer:
    """The MCP server. ``url`` is the endpoint over HTTP, ``sse_url`` the one over SSE.

    ``publishes_resource``: it has RFC 9728 metadata. ``wanted_scope``: scope that tokens need. ``call_scope``: further
    scope for calls of the tool. ``parameter``: query parameter with the token in URLs; None: it is in the header.
    """

    origin: str
    authorization: AuthorizationServer
    publishes_resource: bool = True
    names_metadata: bool = True
    wanted_scope: str | None = None
    call_scope: str | None = None
    parameter: str | None = None
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The headers of each authorized request."""
    sessions: dict[str, asyncio.Queue[str | None]] = field(default_factory=dict[str, "asyncio.Queue[str | None]"])

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    @property
    def sse_url(self) -> str:
        return f"{self.origin}/sse"

    @property
    def log(self) -> list[str]:
        return self.authorization.log

    def app(self) -> Starlette:
        well_known = "/.well-known/oauth-protected-resource"
        return Starlette(
            routes=[
                Route("/mcp", self._mcp, methods=["POST", "GET", "DELETE"]),
                Route("/sse", self._sse),
                Route("/messages/{session}", self._messages, methods=["POST"]),
                Route(f"{well_known}/mcp", self._resource),
                Route(f"{well_known}/sse", self._resource),
                *self.authorization.routes(),
            ]
        )

    def _refusal(self, request: Request, message: dict[str, Any]) -> Response | None:
        if self.parameter is None:
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
        else:
            token = request.query_params.get(self.parameter, "")
        found = self.authorization.holds(token)
        if found is None:
            self.log.append("401")
            said = [f'resource_metadata="{self.origin}/.well-known/oauth-protected-resource{request.url.path}"']
            said = said if self.publishes_resource and self.names_metadata else []
            if self.wanted_scope is not None:
                said.append(f'scope="{self.wanted_scope}"')
            return Response(status_code=401, headers={"WWW-Authenticate": f"Bearer {', '.join(said)}".strip()})
        self.headers.append(dict(request.headers))
        scope = self.call_scope if message.get("method") == "tools/call" else self.wanted_scope
        if scope is not None and not set(scope.split()) <= set(found.scope.split()):
            self.log.append("403")
            said = f'Bearer error="insufficient_scope", scope="{scope}"'
            return Response(status_code=403, headers={"WWW-Authenticate": said})
        return None

    async def _mcp(self, request: Request) -> Response:
        message: dict[str, Any] = await request.json() if request.method == "POST" else {}
        if (refusal := self._refusal(request, message)) is not None:
            return refusal
        if request.method != "POST":
            return Response(status_code=405)
        answer = self._answer(message)
        return Response(status_code=202) if answer is None else JSONResponse(answer)

    async def _sse(self, request: Request) -> Response:
        if (refusal := self._refusal(request, {})) is not None:
            return refusal
        session, queue = f"s{len(self.sessions)}", asyncio.Queue[str | None]()
        self.sessions[session] = queue

        async def events() -> AsyncIterator[str]:
            yield f"event: endpoint\ndata: /messages/{session}\n\n"
            while (data := await queue.get()) is not None:
                yield f"event: message\ndata: {data}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _messages(self, request: Request) -> Response:
        message: dict[str, Any] = await request.json()
        if (refusal := self._refusal(request, message)) is not None:
            return refusal
        if (answer := self._answer(message)) is not None:
            self.sessions[request.path_params["session"]].put_nowait(json.dumps(answer))
        return Response(status_code=202)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        result: dict[str, Any]
        match message.get("method"):
            case "initialize":
                info = {"name": "oauth", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [WHOAMI]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "the user"}]}
            case "ping":
                result = {}
            case _:
                return None
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _resource(self, request: Request) -> Response:
        if not self.publishes_resource:
            return Response(status_code=404)
        self.log.append("resource")
        path = request.url.path.rpartition("/")[2]
        found = {"resource": f"{self.origin}/{path}", "authorization_servers": [self.authorization.issuer]}
        return JSONResponse({**found, **self.resource})

    def close_streams(self) -> None:
        """End all event streams."""
        for queue in self.sessions.values():
            queue.put_nowait(None)


@contextlib.asynccontextmanager
async def oauth_mcp_server(path: str = "") -> AsyncGenerator[OAuthMcpServer]:
    """Start the server; the issuer is below `path`."""
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    found = OAuthMcpServer(origin, AuthorizationServer(origin, path))
    async with asgi_server(found.app(), listener):
        try:
            yield found
        finally:
            found.close_streams()
