"""A server that behaves as an IDE extension of the Claude protocol does, over real sockets: VS Code as documented.

The habits of other extensions are in :mod:`support.claude_servers`. Methods of the server play the user.
"""

import asyncio
import contextlib
import http
import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from support.waiting import eventually_async

HEADER = "x-claude-code-ide-authorization"
TEXT = "text"


class RpcError(Exception):
    """An error of a method, sent as a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"code": code, "message": message} | ({"data": data} if data else {})


@dataclass
class View:
    """An open diff. `answer` is the result of openDiff."""

    path: str
    contents: str
    answer: asyncio.Future[list[str]] = field(default_factory=lambda: asyncio.Future[list[str]]())


class ClaudeServer:
    """VS Code, as the document describes it: one-item FILE_SAVED unless `says_contents`; a UUID as token."""

    ide_name: ClassVar[str] = "Visual Studio Code"
    server_name: ClassVar[str] = "Claude Code VSCode MCP"
    version: ClassVar[str] = "2025-03-26"
    token: ClassVar[str | None] = "550e8400-e29b-41d4-a716-446655440000"
    refusal: ClassVar[int] = 401
    unfragmented: ClassVar[bool] = False
    hidden: ClassVar[frozenset[str]] = frozenset()
    tools: ClassVar[Mapping[str, Sequence[str]]] = {
        "openFile": ("filePath", "preview", "startText", "endText", "selectToEndOfLine", "makeFrontmost"),
        "openDiff": ("old_file_path", "new_file_path", "new_file_contents", "tab_name"),
        "getCurrentSelection": (),
        "getLatestSelection": (),
        "getOpenEditors": (),
        "getWorkspaceFolders": (),
        "getDiagnostics": ("uri",),
        "checkDocumentDirty": ("filePath",),
        "saveDocument": ("filePath",),
        "close_tab": ("tab_name",),
        "closeAllDiffTabs": (),
        "executeCode": ("code",),
    }

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.says_contents = False
        self.views: dict[str, View] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.notified: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.open: list[str] = []
        self.active: str | None = None
        self.dirty: set[str] = set()
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}
        self.hangs: set[str] = set()
        self.port = 0
        self.unsolicited: Callable[[dict[str, Any]], object] = lambda _: None
        """Receives the responses to requests that a test sends to the client."""
        self.clients: set[ServerConnection] = set()
        self._server: Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # --- the user ---

    async def select(
        self, path: str, text: str = "", start: tuple[int, int] = (0, 0), end: tuple[int, int] = (0, 0)
    ) -> None:
        """Select text; positions are 0-based."""
        self.active = path
        await self.tell("selection_changed", self.selection(path, text, start, end))

    def selection(self, path: str, text: str, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
        """Return a selection in the form that this server sends."""
        return {
            "text": text,
            "filePath": path,
            "fileUrl": Path(path).as_uri(),
            "selection": {"start": position(start), "end": position(end), "isEmpty": start == end},
        }

    async def mention(self, path: str, start: int | None = None, end: int | None = None) -> None:
        """Send a file to the agent; lines 0-based."""
        lines = {} if start is None else {"lineStart": start, "lineEnd": end}
        await self.tell("at_mentioned", {"filePath": path, **lines})

    async def view(self) -> View:
        """Return the one open diff."""
        await eventually_async(lambda: self.views, what="a diff view")
        (view,) = self.views.values()
        return view

    async def accept(self, contents: str | None = None) -> None:
        """Save the diff."""
        view = await self.view()
        view.answer.set_result(["FILE_SAVED", view.contents if contents is None else contents])

    async def reject(self) -> None:
        """Reject the diff."""
        (await self.view()).answer.set_result(["DIFF_REJECTED", next(iter(self.views))])

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification to all clients."""
        for client in tuple(self.clients):
            with contextlib.suppress(ConnectionClosed):
                await client.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def called(self, tool: str) -> list[dict[str, Any]]:
        """Return the arguments of a tool's calls."""
        return [arguments for name, arguments in self.calls if name == tool]

    # --- start and stop ---

    async def start(self, port: int = 0) -> None:
        """Listen."""
        self._server = await serve(
            self._serve, "127.0.0.1", port, process_request=self._gate, compression=None, max_size=100 * 2**20,
            subprotocols=[Subprotocol("mcp")], ping_interval=None,
        )  # fmt: skip
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and close every connection."""
        assert self._server is not None
        self._server.close(close_connections=True)
        for task in tuple(self._tasks):
            task.cancel()
        await self._server.wait_closed()
        self.views.clear()

    def lock(self, folder: Path | None = None, **more: object) -> Path:
        """Write the lock file as the extension does."""
        folder = folder or Path(os.environ["HOME"]) / ".claude" / "ide"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.port}.lock"
        content = {
            "pid": os.getpid(),
            "workspaceFolders": [str(self.workspace)],
            "ideName": self.ide_name,
            "transport": "ws",
            **({"authToken": self.token} if self.token else {}),
            **more,
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def _gate(self, connection: ServerConnection, request: Request) -> Response | None:
        self.headers.append(dict(request.headers.raw_items()))
        if self.token is None or not self.checks_token or request.headers.get(HEADER) == self.token:
            return None
        return connection.respond(http.HTTPStatus(self.refusal), "Bad WebSocket upgrade request: Invalid token\n")

    checks_token: ClassVar[bool] = True

    # --- the protocol ---

    async def _serve(self, client: ServerConnection) -> None:
        self.clients.add(client)
        try:
            while True:
                fragments = [fragment async for fragment in client.recv_streaming()]
                if self.unfragmented and len(fragments) != 1:
                    await client.close(1003, "Unsupported data")
                    return
                assert all(isinstance(fragment, str) for fragment in fragments), "a binary frame"
                message = json.loads("".join(str(fragment) for fragment in fragments))
                if "id" in message and "method" in message:
                    task = asyncio.create_task(self._answer(client, message))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                elif "id" in message:
                    self.unsolicited(message)
                else:
                    self.notified.append(message["method"])
                    await self.notification(message["method"])
        except ConnectionClosed:
            pass
        finally:
            self.clients.discard(client)

    async def notification(self, method: str) -> None:
        """Handle a notification."""

    async def _answer(self, client: ServerConnection, message: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = await self.result(message["method"], message.get("params") or {})
        except RpcError as failure:
            reply["error"] = failure.error
        with contextlib.suppress(ConnectionClosed):
            await client.send(json.dumps(reply))

    async def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        match method:
            case "initialize":
                info = {"name": self.server_name, "version": "1"}
                return {"protocolVersion": self.version, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                listed = [(name, names) for name, names in self.tools.items() if name not in self.hidden]
                return {"tools": [{"name": name, "inputSchema": _schema(names)} for name, names in listed]}
            case "tools/call":
                name: str = params["name"]
                arguments: dict[str, Any] = params.get("arguments") or {}
                self.calls.append((name, arguments))
                if name in self.hangs:
                    await asyncio.Future()
                return await self.call(name, arguments)
            case _:
                raise RpcError(-32601, "Method not found")

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a tool."""
        unknown = set(arguments) - set(self.tools.get(name, ()))
        if name not in self.tools or unknown:
            return self.failure(f"unknown tool or arguments: {name} {sorted(unknown)}")
        match name:
            case "openDiff":
                return await self.open_diff(arguments)
            case "close_tab":
                return self.close_tab(arguments["tab_name"])
            case "getOpenEditors":
                return json_text({"tabs": [self.tab(path) for path in self.open]})
            case "getWorkspaceFolders":
                folder = {"name": self.workspace.name, "uri": self.workspace.as_uri(), "path": str(self.workspace)}
                return json_text({"success": True, "folders": [folder], "rootPath": str(self.workspace)})
            case "getCurrentSelection" | "getLatestSelection":
                return json_text({"success": False, "message": "No active editor found"})
            case "getDiagnostics":
                return self.tell_diagnostics(arguments.get("uri"))
            case "checkDocumentDirty":
                return self.is_dirty(self.path_of(arguments))
            case "saveDocument":
                path = self.path_of(arguments)
                if path not in self.open:
                    return json_text({"success": False, "message": f"Document not open: {path}"})
                self.dirty.discard(path)
                return json_text({"success": True, "filePath": path, "saved": True, "message": "Document saved"})
            case "openFile":
                return self.open_file(arguments)
            case "executeCode":
                image = {"type": "image", "data": "aW1hZ2U=", "mimeType": "image/png"}
                return {"content": [{"type": TEXT, "text": f"ran {arguments['code']}"}, image]}
            case _:
                return texts("CLOSED_0_DIFF_TABS")

    def path_of(self, arguments: dict[str, Any]) -> str:
        """Return the file that arguments name."""
        return str(arguments["filePath"])

    def open_file(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer openFile."""
        path = self.path_of(arguments)
        if not Path(path).exists():
            return self.failure(f"File not found: {path}")
        self.open.append(path)
        return texts(f"Opened file: {path}")

    async def open_diff(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer openDiff, which waits for the user's decision."""
        tab = arguments["tab_name"]
        view = self.views[tab] = View(arguments["new_file_path"], arguments["new_file_contents"])
        answer = await view.answer
        self.views.pop(tab, None)
        return texts(*(answer if self.says_contents or answer[0] != "FILE_SAVED" else answer[:1]))

    def close_tab(self, name: str) -> dict[str, Any]:
        """Answer close_tab: an openDiff that waits is answered."""
        view = self.views.get(name)
        if view is not None and not view.answer.done():
            view.answer.set_result(["DIFF_REJECTED", name])
        self.open = [path for path in self.open if Path(path).name != name]
        return texts("TAB_CLOSED")

    def tab(self, path: str) -> dict[str, Any]:
        """Return a tab of getOpenEditors."""
        return {
            "uri": Path(path).as_uri(),
            "isActive": path == self.active,
            "label": Path(path).name,
            "languageId": "python",
            "isDirty": path in self.dirty,
        }

    def tell_diagnostics(self, uri: str | None) -> dict[str, Any]:
        """Answer getDiagnostics."""
        found = {Path(path).as_uri(): each for path, each in self.diagnostics.items()}
        return json_text([{"uri": each, "diagnostics": found[each]} for each in found if uri in (None, each)])

    def is_dirty(self, path: str) -> dict[str, Any]:
        """Answer checkDocumentDirty."""
        if path not in self.open:
            return json_text({"success": False, "message": f"Document not open: {path}"})
        return json_text({"success": True, "filePath": path, "isDirty": path in self.dirty, "isUntitled": False})

    def failure(self, text: str) -> dict[str, Any]:
        """Return the result of a failed tool."""
        return {**texts(text), "isError": True}


def diagnostic(line: int, message: str, character: int = 0) -> dict[str, Any]:
    """Return a diagnostic of the documented form; positions are 0-based."""
    place = {"start": position((line, character)), "end": position((line, character + 1))}
    return {"message": message, "severity": "Error", "range": place, "source": "pyflakes", "code": "E1"}


def texts(*items: str) -> dict[str, Any]:
    """Return a result of text items."""
    return {"content": [{"type": TEXT, "text": item} for item in items]}


def json_text(value: object) -> dict[str, Any]:
    return texts(json.dumps(value))


def position(place: tuple[int, int], first: int = 0) -> dict[str, int]:
    return {"line": place[0] + first, "character": place[1] + first}


def _schema(names: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}


@asynccontextmanager
async def claude_server(kind: type[ClaudeServer], workspace: Path) -> AsyncGenerator[ClaudeServer]:
    """Yield a server that listens and has its lock file."""
    server = kind(workspace)
    await server.start()
    server.lock()
    try:
        yield server
    finally:
        await server.stop()
