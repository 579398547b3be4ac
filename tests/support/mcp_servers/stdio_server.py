"""The loop of an MCP server on stdio with one tool, ``ok``; its subclasses change one answer or another.

The programs are run with ``python -S`` and find this module beside them.
"""

import json
import sys
from typing import Any

TOOL: dict[str, Any] = {"name": "ok", "description": "Works.", "inputSchema": {"type": "object"}}


class StdioServer:
    """A server that answers each request until its input ends."""

    revision = "2025-06-18"
    capabilities: dict[str, Any] = {"tools": {}}  # noqa: RUF012 - read only

    def __init__(self, name: str, *arguments: str) -> None:
        self.name = name
        self.arguments = arguments

    def run(self) -> None:
        for line in sys.stdin:
            self.receive(json.loads(line))

    def receive(self, message: Any) -> None:
        match message.get("method"):
            case None:
                pass
            case "initialize":
                reply(message, self.hello(message))
            case "tools/list":
                reply(message, self.listing())
            case "tools/call":
                self.call(message)
            case method:
                self.receive_other(method, message)

    def hello(self, request: Any) -> dict[str, Any]:
        info = {"name": self.name, "version": "1"}
        return {"protocolVersion": self.revision, "capabilities": self.capabilities, "serverInfo": info}

    def listing(self) -> dict[str, Any]:
        return {"tools": [TOOL]}

    def call(self, request: Any) -> None:
        params = request["params"]
        reply(request, text(self.text_of(params["name"], params.get("arguments") or {})))

    def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        """Return the text of a tool's result."""
        return tool

    def receive_other(self, method: str, message: Any) -> None:
        if "id" in message:
            refuse(message, -32601, "no such method")


def text(value: str) -> dict[str, Any]:
    """Return a result or a prompt's content with one text."""
    return {"content": [{"type": "text", "text": value}]}


def raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def line_of(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def result_line(request: Any, result: Any) -> bytes:
    return line_of(id=request["id"], result=result)


def reply(request: Any, result: Any) -> None:
    raw(result_line(request, result))


def refuse(request: Any, code: int, why: str) -> None:
    raw(line_of(id=request["id"], error={"code": code, "message": why}))


def notify(method: str, **params: Any) -> None:
    raw(notification(method, **params))


def notification(method: str, **params: Any) -> bytes:
    return line_of(method=method, **({"params": params} if params else {}))
