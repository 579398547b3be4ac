"""An MCP server over streamable HTTP whose ``tools/call`` answers misbehave in one way; in this process, no SDK.

What each way is, the code says. Answers are JSON bodies, never streams of events.
"""

import gzip
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOL: dict[str, Any] = {"name": "ok", "description": "Works.", "inputSchema": {"type": "object", "properties": {}}}


class Handler(BaseHTTPRequestHandler):
    """Answers one connection; ``way`` and ``sent`` are those of the server."""

    protocol_version = "HTTP/1.1"
    way = ""
    sent = 0

    def do_POST(self) -> None:
        message: Any = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match message["method"]:
            case "initialize":
                info = {"name": "hostile", "version": "1"}
                self.reply(
                    message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
                )
            case "tools/list":
                self.reply(message, {"tools": [TOOL]})
            case "tools/call":
                self.call(message)
            case _:
                self.answer(202, b"")

    def call(self, message: Any) -> None:
        result = {"content": [{"type": "text", "text": "fine"}]}
        match self.way:
            case "endless":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    while True:
                        type(self).sent += self.wfile.write(b" " * 1024**2)
                except OSError:
                    return
            case "compressed":
                body = gzip.compress(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
                self.answer(200, body, {"content-encoding": "gzip"})
            case "not-json":
                self.answer(200, b"<html>\xff oops</html>")
            case "html":
                self.answer(200, b"<html>oops</html>", {"content-type": "text/html"})
            case "error-500":
                self.answer(500, b"<html>oops</html>", {"content-type": "text/html"})
            case _:
                self.reply(message, result)

    def reply(self, message: Any, result: Any) -> None:
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(204, b"")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del code, size


@contextmanager
def hostile_http(way: str, port: int = 0) -> Generator[tuple[str, type[Handler]]]:
    """The server's URL, and its handler, which counts what it sent."""
    handler = type("HandlerOfOneServer", (Handler,), {"way": way})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
