"""An MCP server over streamable HTTP whose sessions can be forgotten, as by a restart; in this process, no SDK.

It refuses each request with an unknown session in one of the forms of `REFUSALS`, before it does anything.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from support.mcp_http_handler import McpHandler, body_of, serving
from support.mcp_servers.stdio_server import text

STALE: dict[str, Any] = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
REFUSALS: dict[str, tuple[int, str | bytes | dict[str, Any]]] = {
    "400 without an id": (400, {"error": STALE}),
    "400 with an id of null": (400, {"error": STALE, "id": None}),
    "400 with a fixed id": (400, {"error": STALE, "id": "server-error"}),
    "400 with the id": (400, {"error": STALE, "id": "{id}"}),
    "400 of other JSON": (400, b'{"error": "unknown session"}'),
    "400 of text": (400, b"Invalid or missing session ID"),
    "400 that says nothing": (400, b""),
    "400 of a page": (400, b"<html>Bad Request</html>"),
    "404 that says nothing": (404, b""),
    "404 of a page": (404, b"<html>Not Found</html>"),
    "404 without an id": (404, {"error": {"code": -32001, "message": "Session not found"}}),
    "404 with the id": (404, {"error": {"code": -32001, "message": "Session not found"}, "id": "{id}"}),
    "410 that says nothing": (410, b""),
    "200 with an id of null": (200, {"error": STALE, "id": None}),
    "200 with the id": (200, {"error": STALE, "id": "{id}"}),
    "an event with an id of null": (200, json.dumps({"jsonrpc": "2.0", "error": STALE, "id": None})),
    "an event without an id": (200, json.dumps({"jsonrpc": "2.0", "error": STALE})),
    "an event with the id": (200, json.dumps({"jsonrpc": "2.0", "error": STALE, "id": "{id}"})),
}
"""Status and body for a request of an unknown session: bytes, a JSON-RPC message, or the data of an event."""
OWN_ERRORS: dict[str, tuple[int, bytes | dict[str, Any]]] = {
    "400 of text": (400, b"no such file"),
    "400 of other JSON": (400, b'{"error": "no such file"}'),
    "400 with the id": (400, {"error": {"code": -32602, "message": "no such file"}, "id": "{id}"}),
    "404 with the id": (404, {"error": {"code": -32601, "message": "no such file"}, "id": "{id}"}),
    "200 with an id of null": (200, {"error": {"code": -32000, "message": "no such file"}, "id": None}),
    "of another session": (200, {"error": {"code": -32000, "message": "no such file in session 7"}, "id": "{id}"}),
}
"""Status and body of an answer to a call that was made, and failed."""


class SessionHandler(McpHandler):
    """The handler of one connection; the other attributes are the server's."""

    refusal = ""
    own_error = ""
    session = 0
    made = 0
    """Calls that had an effect."""
    waits: list[str]
    """Values of Retry-After with which the next requests are refused by HTTP 429."""
    received = 0
    refuses_calls = False
    forgets_at_list = 0
    keeps_connections = True
    refused_calls = 0

    @classmethod
    def forget(cls) -> None:
        """Forget all sessions."""
        cls.session += 1

    def do_POST(self) -> None:
        message = self.message()
        method = message["method"]
        type(self).received += 1
        if self.waits and method != "notifications/initialized":
            self.answer(429, b"slow down", {"retry-after": self.waits.pop(0)})
        elif method == "initialize":
            type(self).session += 1
            self.answer(200, body_of(message, self.usual_result(message)), {"mcp-session-id": str(self.session)})
        elif method == "server/discover":
            self.answer(400, b"")
        elif method == "tools/call" and self.refuses_calls:
            type(self).refused_calls += 1
            self.refuse(message, *REFUSALS[self.refusal])
        elif method == "tools/list" and self.forgets_at_list:
            type(self).forgets_at_list -= 1
            self.refuse(message, *REFUSALS[self.refusal])
        elif self.headers["mcp-session-id"] != str(self.session):
            self.refuse(message, *REFUSALS[self.refusal])
        elif "id" not in message:
            self.answer(202, b"")
        elif method == "tools/call":
            type(self).made += 1
            if self.own_error:
                self.refuse(message, *OWN_ERRORS[self.own_error])
            else:
                self.answer(200, body_of(message, text("fine")))
        else:
            self.answer(200, body_of(message, self.usual_result(message) or {}))

    def refuse(self, message: Any, status: int, said: "str | bytes | dict[str, Any]") -> None:
        own_id = json.dumps(message.get("id"))
        match said:
            case bytes():
                self.answer(status, said, {"content-type": "text/html"} if said.startswith(b"<") else {})
            case str():
                event = said.replace('"{id}"', own_id)
                self.answer(status, f"data: {event}\n\n".encode(), {"content-type": "text/event-stream"})
            case _:
                body = json.dumps({"jsonrpc": "2.0", **said}).replace('"{id}"', own_id)
                self.answer(status, body.encode())

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        end = {} if self.keeps_connections else {"connection": "close"}
        super().answer(status, body, {**end, **(headers or {})})

    def do_GET(self) -> None:
        self.answer(405, b"")

    def do_DELETE(self) -> None:
        self.answer(204, b"")


@contextmanager
def forgetful_http(
    *, refusal: str = "404 that says nothing", own_error: str = "", port: int = 0, keeps_connections: bool = True
) -> Generator[tuple[str, type[SessionHandler]]]:
    """Run the server; yield its URL and its handler."""
    values: dict[str, Any] = {"refusal": refusal, "own_error": own_error, "waits": []}
    values["keeps_connections"] = keeps_connections
    handler = type("SessionHandlerOfOneServer", (SessionHandler,), values)
    with serving(handler, port) as origin, suppress(ConnectionError):
        yield f"{origin}/mcp", handler
