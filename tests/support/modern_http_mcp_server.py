"""An MCP server over HTTP that speaks only the 2026-07-28 revision, and refuses ``initialize`` in one way.

It runs in the event loop of the test: the real server of the SDK, behind a gate that answers ``initialize`` itself.
"""

import contextlib
import json
import socket
from collections.abc import AsyncGenerator
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from support.asgi_server import asgi_server

UNWILLING = "names the new revision alone in a first refusal"
REFUSALS: dict[str, tuple[int, Any]] = {
    "unsupported version": (
        400,
        {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}},
    ),
    "method not found": (400, {"code": -32601, "message": "Method not found: initialize"}),
    "missing header": (400, {"code": -32020, "message": "Bad Request: Missing MCP-Protocol-Version header"}),
    "missing header as invalid request": (400, {"code": -32000, "message": "Missing MCP-Protocol-Version header"}),
    "invalid request in a 200": (200, {"code": -32600, "message": "Invalid request"}),
    UNWILLING: (400, {"code": -32022, "message": "Unsupported", "data": {"supported": ["2026-07-28"]}}),
    "page of HTTP 400": (400, None),
    "page of HTTP 404": (404, None),
    "page of HTTP 405": (405, None),
}
"""Refusals by way: the HTTP status, and the JSON-RPC error; None: an HTML page."""
ANSWERED = "answered with the new revision"
LOGIN = "wants a login"
"""The way that refuses the handshake with HTTP 400, and every other request with 401."""


class RefusingGate:
    """ASGI middleware that refuses ``initialize`` in the way ``way``, and passes every other request on."""

    def __init__(self, inner: ASGIApp, way: str) -> None:
        self._inner = inner
        self._way = way
        self.methods: list[str] = []
        self.revisions: list[str | None] = []
        """Revision in the header of each request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        request = json.loads(body)
        self.methods.append(request["method"])
        self.revisions.append(Headers(scope=scope).get("mcp-protocol-version"))
        is_first = len(self.methods) == 1 and self._way == UNWILLING
        if request["method"] == "initialize" or self._way == LOGIN or is_first:
            status, kind, answer = self._answer(request["id"])
            if self._way == LOGIN and request["method"] != "initialize":
                status = 401
            headers = [(b"content-type", kind), (b"content-length", str(len(answer)).encode())]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": answer})
            return
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return parts.pop() if parts else await receive()

        await self._inner(scope, again, send)

    def _answer(self, number: Any) -> tuple[int, bytes, bytes]:
        head = {"jsonrpc": "2.0", "id": number}
        if self._way == ANSWERED:
            result: dict[str, Any] = {
                "protocolVersion": "2026-07-28",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "modern", "version": "1"},
            }
            return 200, b"application/json", json.dumps({**head, "result": result}).encode()
        status, error = REFUSALS.get(self._way, (400, None))
        if error is None:
            return status, b"text/html", b"<html>no such thing</html>"
        return status, b"application/json", json.dumps({**head, "error": error}).encode()


@contextlib.asynccontextmanager
async def modern_http(way: str, port: int = 0) -> AsyncGenerator[tuple[str, RefusingGate]]:
    """Run a server with the tools ``add`` and ``grow``; yield its URL and the gate, which records requests."""
    server: MCPServer[Any] = MCPServer("modern")

    @server.tool()
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return str(a + b)

    def grown() -> str:
        """Came later."""
        return "I am new"

    @server.tool()
    async def grow(context: Context[Any, Any]) -> str:
        """Add a tool."""
        server.add_tool(grown)
        await context.notify_tools_changed()
        return "grown"

    gate = RefusingGate(server.streamable_http_app(), way)
    listener = socket.create_server(("127.0.0.1", port))
    async with server.session_manager.run(), asgi_server(gate, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", gate
