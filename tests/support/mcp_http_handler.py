"""The base of handlers of MCP servers over HTTP in the process of a test, and the life of such a server."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.mcp_servers.stdio_server import TOOL


class McpHandler(BaseHTTPRequestHandler):
    """A handler of one connection of a server with one tool, ``ok``. What its class holds is the server's."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    revision = "2025-06-18"

    def message(self) -> Any:
        """Read the posted message."""
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def usual_result(self, message: Any) -> Any:
        """Return the result of ``initialize`` and of ``tools/list``; None for other methods."""
        match message.get("method"):
            case "initialize":
                info = {"name": "in this process", "version": "1"}
                return {"protocolVersion": self.revision, "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                return {"tools": [TOOL]}
            case _:
                return None

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        """Send a whole response, as JSON unless the headers say otherwise."""
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


def body_of(message: Any, result: Any) -> bytes:
    """Return the response to a request."""
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False).encode()


@contextmanager
def serving(handler: type[McpHandler], port: int = 0) -> Generator[str]:
    """Run a server whose handlers have all ended soon after this; yield its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
