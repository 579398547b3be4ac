"""An MCP server over SSE, the transport of MCP's first revision, whose ``tools/call`` misbehaves in one way; no SDK.

The code describes each way. It runs in this process.
"""

import json
import queue
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from support.mcp_http_handler import McpHandler, body_of, serving
from support.mcp_servers.stdio_server import text

PLACES = {"elsewhere": "http://other.invalid/messages", "no-place": "http://[not-an-address"}
LARGE = 3 * 1024**2


class SseHandler(McpHandler):
    """The handler of one connection; ``way``, ``events`` and ``calls`` are those of the server."""

    revision = "2024-11-05"
    way = ""
    events: "queue.Queue[bytes | None]"
    """What the stream that was opened last sends."""
    opened: "list[queue.Queue[bytes | None]]"
    calls = 0

    def do_GET(self) -> None:
        events: queue.Queue[bytes | None] = queue.Queue()
        type(self).events = events
        self.opened.append(events)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        place = PLACES.get(self.way, "/messages?session=1")
        if self.way not in ("mute", "never"):
            self.wfile.write(f"event: endpoint\ndata: {place}\n\n".encode())
        try:
            while self.way != "mute" and (event := events.get(timeout=60)) is not None:
                self.wfile.write(b"event: message\ndata: " + event + b"\n\n")
                self.wfile.flush()
        except (OSError, queue.Empty):
            return

    def do_POST(self) -> None:
        message = self.message()
        status = 202
        match message["method"]:
            case "initialize" | "tools/list":
                self.reply(message, self.usual_result(message))
            case "tools/call":
                type(self).calls += 1
                status = self.call(message)
            case _:
                pass
        self.answer(status, b"No transport found for sessionId" if status == 400 else b"")

    def call(self, message: Any) -> int:
        match self.way:
            case "large":
                self.reply(message, text("x" * LARGE))
            case "forgets" if self.calls == 1:
                return 404
            case "forgets-in-words" if self.calls == 1:
                return 400
            case "refuses":
                return 500
            case "malformed":
                self.events.put(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [}' % message["id"])
            case "ends":
                self.events.put(None)
            case "flood":
                note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
                self.events.put(b"\n\ndata: ".join([json.dumps(note).encode()] * 5_000))
                for number in range(500):
                    self.events.put(b'{"jsonrpc": "2.0", "id": "q%d", "method": "ping"}' % number)
                self.events.put(b"[1, 2\ndata: junk")
                self.reply(message, text("fine"))
            case "invalid-utf8":
                self.events.put(
                    b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "fine\xff"}]}}'
                    % message["id"]
                )
            case "many-values":
                head = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [' % message["id"]
                self.events.put(head + b'{"a":1},' * 1_500_000 + b"1]}}")
            case _:
                self.reply(message, text("fine"))
        return 202

    def reply(self, message: Any, result: Any) -> None:
        self.events.put(body_of(message, result))


@contextmanager
def sse_server(way: str, port: int = 0) -> Generator[tuple[str, type[SseHandler]]]:
    """Run the server; yield its URL and its handler, which counts calls."""
    handler = type("SseHandlerOfOneServer", (SseHandler,), {"way": way, "opened": []})
    with serving(handler, port) as origin:
        try:
            yield f"{origin}/sse", handler
        finally:
            for events in handler.opened:
                events.put(None)
