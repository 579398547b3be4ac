"""Client side of an MCP connection as a state machine: makes requests, reads responses and notifications. No I/O.

Covers the methods of IDE companions: initialize, tools/list, tools/call, notifications, and answers to ping. Accepts
messages of servers of any protocol version, including batches. A message that is not valid JSON-RPC is returned as a
:class:`ParseError`, never raised. The server side is :mod:`mcp_peer`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from isthmus import __version__
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, is_object
from isthmus.encoding.json_text import JsonError, decode_any_text
from isthmus.ide.mcp.mcp_peer import LATEST_PROTOCOL_VERSION, PROTOCOL_VERSIONS
from isthmus.ide.mcp.tool_names import ANSWERED_BY
from isthmus.record import record
from isthmus.rpc import messages as rpc

CLIENT_NAME = "isthmus"


_RULES = rpc.Rules(
    not_object="expected a JSON-RPC object, received {received}",
    batch="expected a JSON-RPC object, received a batch in a batch",
    members={"method": "expected a method, or the id of a request of ours"},
    response_id_types=(int,),
)


@record
class ToolOutcome:
    """Result of a tool: the text of its first text block, if any, and all content blocks."""

    text: str | None
    is_error: bool
    content: tuple[JsonObject, ...] = field(default=(), compare=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the text blocks, in order."""
        texts = (block.get("text") for block in self.content)
        return tuple(text for text in texts if isinstance(text, str))


@dataclass(slots=True)
class McpClient:
    """Session with one server. ``protocol_version`` is the negotiated one; None before initialize."""

    protocol_version: str | None = None
    server_name: str = ""
    _next_id: int = field(default=0)

    def initialize(self) -> rpc.JsonMessage:
        """Return the ``initialize`` request, which is the first one."""
        return self.request(
            "initialize",
            {
                "protocolVersion": LATEST_PROTOCOL_VERSION,
                "capabilities": {},
                "clientInfo": {"name": CLIENT_NAME, "version": __version__},
            },
        )

    def initialized(self, result: JsonObject) -> rpc.JsonMessage | None:
        """Process the result of initialize; return the next notification, or None for an unsupported version."""
        version = result.get("protocolVersion")
        if version not in PROTOCOL_VERSIONS:
            return None
        self.protocol_version = version
        info = result.get("serverInfo")
        self.server_name = str(cast("JsonObject", info).get("name", "")) if isinstance(info, Mapping) else ""
        return rpc.notification("notifications/initialized", {})

    def request(self, method: str, params: JsonObject) -> rpc.JsonMessage:
        """Return a request with a new id."""
        number, self._next_id = self._next_id, self._next_id + 1
        return rpc.request(number, method, params)

    def call_tool(self, name: str, arguments: JsonObject, answered_by: str = "") -> rpc.JsonMessage:
        """Return a ``tools/call`` request; one that closes a view may say who answered its question elsewhere."""
        params: JsonObject = {"name": name, "arguments": arguments}
        return self.request("tools/call", {**params, "_meta": {ANSWERED_BY: answered_by}} if answered_by else params)


def receive(data: str | bytes) -> tuple[rpc.Message, ...]:
    """Return the messages in one HTTP body or event; a batch has several."""
    try:
        value = decode_any_text(data)
    except JsonError as error:
        return (rpc.ParseError(None, rpc.PARSE_ERROR, f"expected a JSON-RPC message: {error}"),)
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(_with_object_result(rpc.message_of(value, _RULES)) for value in values)


def _with_object_result(message: rpc.Message) -> rpc.Message:
    if isinstance(message, rpc.Response) and not isinstance(message.result, dict):
        problem = f"expected result as an object, received {rpc.kind_of(message.result)}"
        return rpc.ParseError(message.id, rpc.INVALID_REQUEST, problem)
    return message


def answer(request: rpc.Request) -> rpc.JsonMessage:
    """Return the response to a server's request; only ``ping`` is supported."""
    if request.method == "ping":
        return rpc.response(request.id, {})
    return rpc.error_response(request.id, rpc.METHOD_NOT_FOUND, f"Method not found: {request.method[:200]}")


def tool_names(result: JsonObject) -> frozenset[str]:
    """Return the tool names in the result of ``tools/list``; malformed entries are left out."""
    return frozenset(tool_arguments(result))


def tool_arguments(result: JsonObject) -> dict[str, frozenset[str]]:
    """Return the argument names of each tool in the result of ``tools/list``, by tool name."""
    tools = [as_object(entry) for entry in as_list(result.get("tools"))]
    return {
        name: frozenset(as_object(as_object(tool.get("inputSchema")).get("properties")))
        for tool in tools
        if isinstance(name := tool.get("name"), str)
    }


def tool_outcome(result: JsonObject) -> ToolOutcome:
    """Decode the result of ``tools/call``."""
    readable = tuple(block for block in as_list(result.get("content")) if is_object(block))
    text = next((block["text"] for block in readable if isinstance(block.get("text"), str)), None)
    return ToolOutcome(text, result.get("isError") is True, readable)
