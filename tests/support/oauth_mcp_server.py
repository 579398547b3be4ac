"""An MCP server over HTTP that wants a login, and its authorization server, in the event loop of the test.

It registers clients, checks PKCE, redirects at once as if the person had agreed, and renews tokens. What it was asked
is in ``log``; how long tokens hold and whether they are renewed can be set.
"""

import asyncio
import base64
import contextlib
import hashlib
import secrets
import socket
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

TOOL: dict[str, Any] = {
    "name": "whoami",
    "description": "Says it.",
    "inputSchema": {"type": "object", "properties": {}},
}


@dataclass(slots=True)
class OAuthMcpServer:
    """``url`` is the MCP endpoint."""

    origin: str
    seconds: int = 3600
    renews: bool = True
    log: list[str] = field(default_factory=list[str])
    clients: set[str] = field(default_factory=set[str])
    codes: dict[str, str] = field(default_factory=dict[str, str])
    tokens: dict[str, float] = field(default_factory=dict[str, float])
    refreshing: set[str] = field(default_factory=set[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The headers of each request that was logged in."""

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def app(self) -> Starlette:
        routes = [
            Route("/mcp", self._mcp, methods=["POST", "GET", "DELETE"]),
            Route("/.well-known/oauth-protected-resource/mcp", self._resource),
            Route("/.well-known/oauth-authorization-server", self._metadata),
            Route("/register", self._register, methods=["POST"]),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    async def _mcp(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens.get(token, 0) < time.time():
            self.log.append("401")
            metadata = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
            return Response(status_code=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{metadata}"'})
        self.headers.append(dict(request.headers))
        if request.method != "POST":
            return Response(status_code=405)
        message: dict[str, Any] = await request.json()
        result: dict[str, Any]
        match message.get("method"):
            case "initialize":
                info = {"name": "oauth", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [TOOL]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "the person"}]}
            case "ping":
                result = {}
            case _:
                return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _resource(self, request: Request) -> Response:
        return JSONResponse({"resource": self.url, "authorization_servers": [self.origin]})

    async def _metadata(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/authorize",
                "token_endpoint": f"{self.origin}/token",
                "registration_endpoint": f"{self.origin}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def _register(self, request: Request) -> Response:
        self.log.append("register")
        client = f"client-{len(self.clients)}"
        self.clients.add(client)
        return JSONResponse({**await request.json(), "client_id": client}, status_code=201)

    async def _authorize(self, request: Request) -> Response:
        self.log.append("authorize")
        query = request.query_params
        code = secrets.token_hex(8)
        self.codes[code] = query["code_challenge"]
        return RedirectResponse(f"{query['redirect_uri']}?code={code}&state={query['state']}")

    async def _token(self, request: Request) -> Response:
        form = await request.form()
        self.log.append(str(form["grant_type"]))
        if form["grant_type"] == "refresh_token":
            if not self.renews or form["refresh_token"] not in self.refreshing:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        else:
            digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
            if self.codes.pop(str(form["code"]), None) != base64.urlsafe_b64encode(digest).decode().rstrip("="):
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        token, renewal = secrets.token_hex(8), secrets.token_hex(8)
        self.tokens[token] = time.time() + self.seconds
        self.refreshing.add(renewal)
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self.seconds, "refresh_token": renewal}
        return JSONResponse(answer)


@contextlib.asynccontextmanager
async def oauth_mcp_server() -> AsyncGenerator[OAuthMcpServer]:
    """The server, listening."""
    listener = socket.create_server(("127.0.0.1", 0))
    found = OAuthMcpServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
    server = uvicorn.Server(uvicorn.Config(found.app(), log_level="critical", lifespan="off"))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield found
    finally:
        server.should_exit = True
        await running
        listener.close()
