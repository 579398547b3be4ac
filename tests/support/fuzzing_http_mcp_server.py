"""An MCP server over HTTP that answers a call with the bytes of a plan, cut at any place; in this process, no SDK.

At ``/mcp`` it speaks streamable HTTP, at ``/sse`` the transport of MCP's first revision.
"""

import json
import queue
import random
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.mcp_frames import ID, events, frame, pieces

TEXT = "fine: \u00e9 \u4e16\u754c \U0001f600"
"""What a good answer says, in letters of several bytes."""
TOOL: dict[str, Any] = {"name": "ok", "description": "Works.", "inputSchema": {"type": "object"}}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent for a call: a body, and how it is cut. ``has_answer``: a good answer stands behind it."""

    body: bytes
    seed: int
    kind: str = "text/event-stream"
    status: int = 200
    has_answer: bool = True

    @staticmethod
    def good(chance: random.Random) -> "Plan":
        """A good answer alone, cut as others are."""
        return Plan(b"", chance.getrandbits(32))

    @staticmethod
    def of(chance: random.Random) -> "Plan":
        """A generated one."""
        if chance.random() < 0.2:
            kind = chance.choice(["application/json", "application/json", "text/html", ""])
            status = chance.choice([200, 200, 400, 500])
            body = frame(chance)
            if b'"method"' in body and status == 200:
                # As JSON it is a message that answers nothing: the SDK waits for an answer until the call's deadline.
                kind = "text/html"
            return Plan(body, chance.getrandbits(32), kind, status, has_answer=False)
        return Plan(events(chance), chance.getrandbits(32), has_answer=chance.random() < 0.9)


class FuzzingHandler(BaseHTTPRequestHandler):
    """Answers one connection; ``plan`` and ``stream`` are those of the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    plan: Plan | None
    stream: "queue.Queue[bytes | None]"

    def do_GET(self) -> None:
        if self.path != "/sse":
            self._respond(405, b"")
            return
        type(self).stream = stream = queue.Queue[bytes | None]()
        self.close_connection = True
        with suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
            while (part := stream.get()) is not None:
                self.wfile.write(part)

    def do_POST(self) -> None:
        message: Any = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match message.get("method"):
            case "initialize":
                info = {"name": "fuzzing", "version": "1"}
                result: Any = {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [TOOL]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": TEXT}]}
            case _:
                self._respond(202, b"")
                return
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False).encode()
        plan = self.plan if message["method"] == "tools/call" else None
        if self.path == "/messages":
            self._respond(202, b"")
            self._push(message["id"], answer, plan)
        elif plan is None:
            self._respond(200, answer)
        else:
            self._perform(message["id"], answer, plan)

    def _push(self, number: Any, answer: bytes, plan: Plan | None) -> None:
        body = b"event: message\ndata: " + answer + b"\n\n"
        if plan is None:
            self.stream.put(body)
            return
        chance = random.Random(plan.seed)  # noqa: S311 - to be repeated
        for part in pieces(chance, plan.body.replace(ID, json.dumps(number).encode()) + body):
            self.stream.put(part)

    def _perform(self, number: Any, answer: bytes, plan: Plan) -> None:
        """Send the plan in chunks of any size, and the bytes of these in pieces of any size."""
        chance = random.Random(plan.seed)  # noqa: S311 - to be repeated
        body = plan.body.replace(ID, json.dumps(number).encode())
        if plan.has_answer:
            body += b"data: " + answer + b"\n\n"
        head = f"HTTP/1.1 {plan.status} X\r\ncontent-type: {plan.kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in pieces(chance, body) if part)
        is_cut = not plan.has_answer and chance.random() < 0.3
        self.close_connection = is_cut
        with suppress(OSError):
            for part in pieces(chance, head + chunks + (b"" if is_cut else b"0\r\n\r\n")):
                self.wfile.write(part)

    def _respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self) -> None:
        self._respond(204, b"")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        del code, size


@contextmanager
def fuzzing_http() -> Generator[tuple[str, type[FuzzingHandler]]]:
    """The origin of the server, and its handler, whose plan is the next call's."""
    handler = type("FuzzingHandlerOfOneServer", (FuzzingHandler,), {"plan": None, "stream": queue.Queue()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        handler.stream.put(None)
        server.shutdown()
        thread.join()
        server.server_close()
