"""The client side of an MCP connection as a state machine: requests out, answers and notifications in. No I/O.

Covers what an IDE companion offers: initialize, tools/list, tools/call, notifications, and being pinged. It accepts
what servers of any protocol version send, batches too, and reads everything with suspicion: a message that is no
JSON-RPC is an event of its own, never an exception. The server side is :mod:`mcp_peer`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from isthmus import __version__
from isthmus.codec import JsonObject
from isthmus.ide.mcp.json_rpc_message import (
    METHOD_NOT_FOUND,
    Message,
    RequestId,
    decode,
    error_response,
    notification,
    request,
    request_id_of,
    response,
)
from isthmus.ide.mcp.mcp_peer import LATEST_PROTOCOL_VERSION, PROTOCOL_VERSIONS
from isthmus.json_shapes import as_list, as_object, is_object
from isthmus.json_text import JsonError

CLIENT_NAME = "isthmus"


# What one message means. A closed union: match with assert_never.


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of our request."""

    request_id: int
    result: JsonObject


@dataclass(frozen=True, slots=True)
class Failed:
    """The JSON-RPC error of our request."""

    request_id: int
    code: int
    text: str
    data: str | None = None
    """What some servers say beside the message, and often the only thing that helps."""


@dataclass(frozen=True, slots=True)
class Told:
    """A notification of the server."""

    method: str
    params: object


@dataclass(frozen=True, slots=True)
class Asked:
    """The server asked us something: send this reply."""

    reply: Message


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What came is no message; ``reason`` says why."""

    reason: str


Incoming: TypeAlias = Answered | Failed | Told | Asked | Unreadable


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool returned: the text of its first text block, if any, and all its blocks."""

    text: str | None
    is_error: bool
    content: tuple[JsonObject, ...] = field(default=(), compare=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of its text blocks, in order."""
        texts = (block.get("text") for block in self.content)
        return tuple(text for text in texts if isinstance(text, str))


@dataclass(slots=True)
class McpClient:
    """One session with one server. ``protocol_version`` is what was agreed on, None before initialize."""

    protocol_version: str | None = None
    server_name: str = ""
    _next_id: int = field(default=0)

    def initialize(self) -> Message:
        """The first request."""
        return self.request(
            "initialize",
            {
                "protocolVersion": LATEST_PROTOCOL_VERSION,
                "capabilities": {},
                "clientInfo": {"name": CLIENT_NAME, "version": __version__},
            },
        )

    def initialized(self, result: JsonObject) -> Message | None:
        """Take the result of initialize; the notification that completes it, or None when no version fits."""
        version = result.get("protocolVersion")
        if version not in PROTOCOL_VERSIONS:
            return None
        self.protocol_version = version
        info = result.get("serverInfo")
        self.server_name = str(cast("JsonObject", info).get("name", "")) if isinstance(info, Mapping) else ""
        return notification("notifications/initialized", {})

    def request(self, method: str, params: JsonObject) -> Message:
        """A request with an id of its own."""
        number, self._next_id = self._next_id, self._next_id + 1
        return request(number, method, params)

    def call_tool(self, name: str, arguments: JsonObject) -> Message:
        """A ``tools/call``."""
        return self.request("tools/call", {"name": name, "arguments": arguments})


def receive(data: str | bytes) -> tuple[Incoming, ...]:
    """What came in one body or one event; several for a batch."""
    try:
        value = decode(data)
    except JsonError as error:
        return (Unreadable(f"expected a JSON-RPC message: {error}"),)
    messages = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(_incoming(message) for message in messages)


def _incoming(value: object) -> Incoming:
    if not isinstance(value, dict):
        return Unreadable(f"expected a JSON-RPC object, received {type(value).__name__}")
    message = cast("dict[str, Any]", value)
    method, number = message.get("method"), request_id_of(message)
    if isinstance(method, str):
        if number is not None:
            return Asked(_reply(method, number))
        return Told(method, message.get("params"))
    if not isinstance(number, int):
        return Unreadable("expected a method, or the id of a request of ours")
    error = message.get("error")
    if isinstance(error, dict):
        problem = cast("dict[str, Any]", error)
        code = problem.get("code")
        data = problem.get("data")
        text = str(problem.get("message", "no message"))
        return Failed(number, code if isinstance(code, int) else 0, text, data if isinstance(data, str) else None)
    result = message.get("result")
    if not isinstance(result, dict):
        return Unreadable(f"expected result as an object, received {type(result).__name__}")
    return Answered(number, cast("dict[str, Any]", result))


def _reply(method: str, number: RequestId) -> Message:
    if method == "ping":
        return response(number, {})
    return error_response(number, METHOD_NOT_FOUND, f"Method not found: {method[:200]}")


def tool_names(result: JsonObject) -> frozenset[str]:
    """The names in the result of ``tools/list``; entries that are no tools are left out."""
    return frozenset(tool_arguments(result))


def tool_arguments(result: JsonObject) -> dict[str, frozenset[str]]:
    """The tools in the result of ``tools/list`` by name, each with the names of the arguments that its schema has."""
    tools = [as_object(entry) for entry in as_list(result.get("tools"))]
    return {
        name: frozenset(as_object(as_object(tool.get("inputSchema")).get("properties")))
        for tool in tools
        if isinstance(name := tool.get("name"), str)
    }


def tool_outcome(result: JsonObject) -> ToolOutcome:
    """The result of ``tools/call``."""
    readable = tuple(block for block in as_list(result.get("content")) if is_object(block))
    text = next((block["text"] for block in readable if isinstance(block.get("text"), str)), None)
    return ToolOutcome(text, result.get("isError") is True, readable)
