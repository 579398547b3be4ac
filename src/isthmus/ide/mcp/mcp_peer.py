"""Server side of an MCP connection as a state machine: reads messages, returns responses and tool calls. No I/O.

Covers the methods that IDE clients use in protocol versions 2024-11-05 to 2025-11-25: initialize, ping, tools/list,
tools/call, notifications and their errors (JSON-RPC 2.0). Lists of prompts and resources are empty, for clients that
request them although none were declared. Batches are refused: MCP removed them in 2025-06-18. A transport passes one
message at a time to :meth:`McpPeer.receive`, runs the returned tool calls, and passes each result to
:meth:`McpPeer.finish`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never, cast

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode_any_text
from isthmus.ide.mcp.tool_names import ANSWERED_BY
from isthmus.record import record
from isthmus.rpc import messages as rpc
from isthmus.text.visible import visible_line

PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_PROTOCOL_VERSION = PROTOCOL_VERSIONS[-1]

MAXIMUM_CALLS = 256
"""Maximum number of concurrent calls of one client."""
MAXIMUM_NAME = 60
"""Maximum number of characters of the name of a surface."""


@record
class ToolDefinition:
    """Entry of ``tools/list``; ``input_schema`` is a JSON Schema of type object.

    An unlisted tool can still be called: some real clients call known tools without listing them.
    """

    name: str
    description: str
    input_schema: JsonObject
    is_listed: bool = True


@record
class CallToolResult:
    """Result of ``tools/call``: content blocks of MCP, which describe a failure if ``is_error``."""

    content: tuple[JsonObject, ...] = ()
    is_error: bool = False

    @staticmethod
    def text(text: str) -> "CallToolResult":
        """Return a successful result with one text block."""
        return CallToolResult(({"type": "text", "text": text},))

    @staticmethod
    def error(text: str) -> "CallToolResult":
        """Return an error result with one text block."""
        return CallToolResult(({"type": "text", "text": text},), is_error=True)


OWN_CLIENT = "isthmus"
"""Value of ``clientInfo.name`` in our own clients."""


@record
class ClientInfo:
    """Client that sent initialize, with the negotiated protocol version."""

    name: str
    version: str
    protocol_version: str

    @property
    def title(self) -> str:
        """Name for users: the client's own name; "Isthmus" for our agent."""
        return "Isthmus" if self.name == OWN_CLIENT else self.name or "agent"


# Outcome of one message. A closed union: match with assert_never.


@record
class Reply:
    """Send this response. If ``malformed``, the message was not a valid request; HTTP answers with status 400."""

    message: rpc.JsonMessage
    malformed: bool = False


@record
class CallTool:
    """Run this tool and pass its result to :meth:`McpPeer.finish`.

    ``progress_token`` is for notifications about its progress; None if the client wants none. ``answered_by`` is the
    surface where, as the client claims, the question of a view that it closes was answered; empty if it does not say.
    """

    request_id: rpc.RequestId
    name: str
    arguments: JsonObject
    progress_token: rpc.RequestId | None = None
    answered_by: str = ""


@record
class CancelCall:
    """Stop this call, which the client cancelled; its result is not sent."""

    request_id: rpc.RequestId


@record
class Ignored:
    """Do nothing: the message requires no action."""


Received: TypeAlias = Reply | CallTool | CancelCall | rpc.Notification | Ignored


_LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


_RULES = rpc.Rules(
    not_object="expected a JSON-RPC 2.0 object, received {received}",
    batch="batches are not supported by MCP since 2025-06-18: send each message alone",
    members={
        "jsonrpc": 'expected "jsonrpc": "2.0"',
        "method": "expected method as a string, received {received}",
        "id": "expected id as a string or whole number, received {received}",
        "params": "{method}: expected params as an object, received {received}",
    },
    response_id_types=(int, str),
)


@dataclass(slots=True)
class McpPeer:
    """Server side of one connection. ``client`` is None until initialize succeeds; pass it to resume a session.

    ``tools`` may be replaced at any time. ``capabilities`` are declared in the response to initialize.
    """

    name: str
    version: str
    tools: Sequence[ToolDefinition]
    client: ClientInfo | None = None
    capabilities: JsonObject = field(default_factory=lambda: {"tools": {}})
    _running: set[rpc.RequestId] = field(default_factory=set[rpc.RequestId])

    def receive(self, data: bytes | str) -> Received:
        """Process one JSON message, passed as text or UTF-8 bytes.

        Never raises on any input. A refused message leaves the state unchanged.
        """
        try:
            message = rpc.message_of(decode_any_text(data), _RULES)
        except JsonError as error:
            message = rpc.ParseError(None, rpc.PARSE_ERROR, f"expected one JSON-RPC 2.0 message as UTF-8 JSON: {error}")
        match message:
            case rpc.Request(request_id, method, params):
                return self._handle_request(request_id, method, params)
            case rpc.Notification():
                return self._handle_notification(message)
            case rpc.ParseError(None, code=rpc.INVALID_PARAMS):
                return Ignored()  # a notification
            case rpc.ParseError(request_id, code, text):
                return Reply(rpc.error_response(request_id, code, text), malformed=code != rpc.INVALID_PARAMS)
            case rpc.Response() | rpc.ErrorResponse():
                return Ignored()
            case _:
                assert_never(message)

    def finish(self, request_id: rpc.RequestId, result: CallToolResult) -> rpc.JsonMessage | None:
        """Return the response to a tool call; None if the client has cancelled it."""
        if request_id not in self._running:
            return None
        self._running.discard(request_id)
        encoded: dict[str, Any] = {"content": list(result.content)}
        if result.is_error:
            encoded["isError"] = True
        return rpc.response(request_id, encoded)

    def _handle_notification(self, message: rpc.Notification) -> Received:
        if message.method == "notifications/cancelled":
            request_id = rpc.as_id(message.params.get("requestId"))
            if request_id is not None and request_id in self._running:
                self._running.discard(request_id)
                return CancelCall(request_id)
            return Ignored()
        return message

    def _handle_request(self, request_id: rpc.RequestId, method: str, params: JsonObject) -> Received:
        try:
            match method:
                case "initialize":
                    return Reply(rpc.response(request_id, self._initialize(params)))
                case "ping":
                    return Reply(rpc.response(request_id, {}))
                case "tools/list":
                    return Reply(rpc.response(request_id, self._list_tools(params)))
                case "tools/call":
                    return self._call_tool(request_id, params)
                case "prompts/list" | "resources/list" | "resources/templates/list":
                    return Reply(rpc.response(request_id, {_LISTS[method]: []}))
                case _:
                    raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        except rpc.RpcError as error:
            return Reply(rpc.error_response(request_id, error.code, str(error)))

    def _initialize(self, params: JsonObject) -> JsonObject:
        if self.client is not None:
            raise rpc.RpcError(rpc.INVALID_REQUEST, "initialize: this connection is initialized already")
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            problem = f"initialize: expected protocolVersion as a string, received {rpc.kind_of(requested)}"
            raise rpc.RpcError(rpc.INVALID_PARAMS, problem)
        info = params.get("clientInfo")
        known = cast("JsonObject", info if isinstance(info, dict) else {})
        agreed = requested if requested in PROTOCOL_VERSIONS else LATEST_PROTOCOL_VERSION
        # Titles and questions contain these texts, so they must not reorder the text around them.
        name, version = (visible_line(str(known.get(field, ""))[:200]) for field in ("name", "version"))
        self.client = ClientInfo(name, version, agreed)
        return {
            "protocolVersion": agreed,
            "capabilities": self.capabilities,
            "serverInfo": {"name": self.name, "version": self.version},
        }

    def _list_tools(self, params: JsonObject) -> JsonObject:
        self._require_initialized("tools/list")
        if params.get("cursor") is not None:
            raise rpc.RpcError(rpc.INVALID_PARAMS, "tools/list: unknown cursor, all tools are on the first page")
        return {
            "tools": [
                {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
                for tool in self.tools
                if tool.is_listed
            ]
        }

    def _call_tool(self, request_id: rpc.RequestId, params: JsonObject) -> Received:
        self._require_initialized("tools/call")
        name = params.get("name")
        if not isinstance(name, str):
            raise rpc.RpcError(
                rpc.INVALID_PARAMS, f"tools/call: expected name as a string, received {rpc.kind_of(name)}"
            )
        for tool in self.tools:  # each call comes here; a generator would cost as much again
            if tool.name == name:
                break
        else:
            known = ", ".join(tool.name for tool in self.tools)
            raise rpc.RpcError(rpc.INVALID_PARAMS, f"Unknown tool: {name[:200]}; this server has {known}")
        arguments = params.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise rpc.RpcError(
                rpc.INVALID_PARAMS, f"tools/call: expected arguments as an object, received {rpc.kind_of(arguments)}"
            )
        if request_id in self._running:
            raise rpc.RpcError(rpc.INVALID_REQUEST, f"a request with id {request_id!r} is still running")
        if len(self._running) >= MAXIMUM_CALLS:
            raise rpc.RpcError(
                rpc.SERVER_ERROR, f"tools/call: {MAXIMUM_CALLS} calls are running; wait for their answers"
            )
        self._running.add(request_id)
        called = cast("JsonObject", arguments or {})
        given: object = params.get("_meta")
        if not isinstance(given, dict):
            return CallTool(request_id, name, called)
        meta = cast("JsonObject", given)
        return CallTool(request_id, name, called, _progress_token(meta), _answered_by(meta))

    def _require_initialized(self, method: str) -> None:
        if self.client is None:
            raise rpc.RpcError(rpc.INVALID_REQUEST, f"{method}: send initialize first")


def _answered_by(meta: JsonObject) -> str:
    by: object = meta.get(ANSWERED_BY)
    return visible_line(by[:MAXIMUM_NAME])[:MAXIMUM_NAME].strip() if isinstance(by, str) else ""


def _progress_token(meta: JsonObject) -> rpc.RequestId | None:
    """Return the token for notifications about the progress of a request; None if it has none."""
    token: object = meta.get("progressToken")
    return token if isinstance(token, str) or (isinstance(token, int) and not isinstance(token, bool)) else None
