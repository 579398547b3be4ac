"""A server that behaves as the VS Code companion of Gemini CLI does, made with the MCP Python SDK.

Answers as event streams or as JSON, the first context with the GET stream, notifications to all sessions, a bare ping
as keep-alive, unknown sessions refused with 400. Its methods cause the faults that a test needs.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel

from support.asgi_server import asgi_server
from support.waiting import eventually_async

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

TOKEN = "the-token-of-this-window"


class _Notification(BaseModel):
    method: str
    params: dict[str, Any] | None = None


class VsCodeCompanion:
    """One window. `opened` holds the diffs in the order they came, `closed` the arguments of closeDiff."""

    def __init__(
        self, *, as_json: bool, stream: bool = True, tools: tuple[str, ...] = ("openDiff", "closeDiff")
    ) -> None:
        self.context: dict[str, Any] = {"workspaceState": {"openFiles": []}}
        self.opened: list[tuple[str, str]] = []
        self.closed: list[dict[str, Any]] = []
        self.contents: dict[str, str] = {}
        self.plain_close = False
        self.failure: str | None = None
        self.answer_late: asyncio.Event | None = None
        self.requests: list[tuple[str, str | None]] = []
        self.port = 0
        self._as_json = as_json
        self._stream = stream
        self._tools = tools
        self._sessions: list[Any] = []
        self._manager: StreamableHTTPSessionManager | None = None
        self._restart = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def discovery(self, workspace: Path, **more: object) -> Path:
        """Write the discovery file as the extension does: without ideInfo, unless it is in `more`."""
        folder = Path(os.environ["TMPDIR"]) / "gemini" / "ide"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"gemini-ide-server-{os.getpid()}-{self.port}.json"
        content = {"port": self.port, "workspacePath": str(workspace), "authToken": TOKEN, **more}
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    async def send(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification to all sessions."""
        for session in self._sessions:
            with contextlib.suppress(Exception):
                await session.send_notification(_Notification(method=method, params=dict(params) if params else None))

    async def look_at(self, *files: Mapping[str, Any]) -> None:
        """Put the focus on these files, as the user does."""
        self.context = {"workspaceState": {"openFiles": list(files)}}
        await self.send("ide/contextUpdate", self.context)

    async def accept(self, path: str, content: str) -> None:
        """Accept a diff, as the user does."""
        await self.send("ide/diffAccepted", {"filePath": path, "content": content})

    async def reject(self, path: str) -> None:
        """Close a diff view, as the user does."""
        await self.send("ide/diffRejected", {"filePath": path, "content": "left in the view"})

    async def forget_sessions(self) -> None:
        """Break every stream and forget all sessions, as a reload of the window does."""
        former = self._manager
        self._restart.set()
        await eventually_async(lambda: self._manager is not former and self._manager is not None)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve one request."""
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append((scope["method"], headers.get("authorization")))
        if headers.get("authorization") != f"Bearer {TOKEN}":
            await _refuse(send, 401, "Unauthorized")
        elif scope["method"] == "DELETE":
            await _refuse(send, 404, "Cannot DELETE /mcp")
        elif scope["method"] == "GET" and not self._stream:
            await _refuse(send, 405, "Method Not Allowed")
        else:
            assert self._manager is not None
            await self._manager.handle_request(scope, receive, self._watched(scope, send))

    def _watched(self, scope: "Scope", send: "Send") -> "Send":
        async def watch(message: "Message") -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 404:
                    message["status"] = 400
                if message["status"] == 200 and scope["method"] == "GET":
                    task = asyncio.create_task(self._greet())
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
            await send(message)

        return watch

    async def _greet(self) -> None:
        await self.send("ping")
        await self.send("ide/contextUpdate", self.context)

    @property
    def is_serving(self) -> bool:
        """Whether requests can be answered."""
        return self._manager is not None

    async def run_managers(self) -> None:
        """Serve sessions; a new manager after each `forget_sessions`."""
        while True:
            self._restart.clear()
            self._sessions.clear()
            server: Server[Any] = Server(
                "gemini-cli-companion-mcp-server", version="1.0.0",
                on_list_tools=self._list_tools, on_call_tool=self._call_tool,
            )  # fmt: skip
            manager = StreamableHTTPSessionManager(server, json_response=self._as_json)
            async with manager.run():
                self._manager = manager
                await self._restart.wait()

    async def _list_tools(self, context: Any, _params: object) -> mcp_types.ListToolsResult:
        self._sessions.append(context.session)
        schema = {"type": "object", "properties": {"filePath": {"type": "string"}}}
        return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name=n, input_schema=schema) for n in self._tools])

    async def _call_tool(self, _context: object, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        arguments = params.arguments or {}
        if self.answer_late is not None:
            await self.answer_late.wait()
        if self.failure is not None:
            return mcp_types.CallToolResult(content=[_text(self.failure)], is_error=True)
        path = arguments["filePath"]
        if params.name == "openDiff":
            self.opened.append((path, arguments["newContent"]))
            self.contents[path] = arguments["newContent"]
            return mcp_types.CallToolResult(content=[])
        self.closed.append(arguments)
        content = self.contents.pop(path, None)
        text = (content or "") if self.plain_close else json.dumps({"content": content} if content is not None else {})
        return mcp_types.CallToolResult(content=[_text(text)])


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)


async def _refuse(send: "Send", status: int, text: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text.encode()})


@asynccontextmanager
async def vscode_companion(
    *, as_json: bool = False, stream: bool = True, tools: tuple[str, ...] = ("openDiff", "closeDiff")
) -> AsyncGenerator[VsCodeCompanion]:
    """Yield a listening window; it has no discovery file yet."""
    companion = VsCodeCompanion(as_json=as_json, stream=stream, tools=tools)
    listener = socket.create_server(("127.0.0.1", 0))
    companion.port = listener.getsockname()[1]
    async with asgi_server(companion, listener):
        managers = asyncio.create_task(companion.run_managers())
        try:
            await eventually_async(lambda: companion.is_serving, what="the window serves sessions")
            yield companion
        finally:
            managers.cancel()
            await asyncio.wait({managers})
