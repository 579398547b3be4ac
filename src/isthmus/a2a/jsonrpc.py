"""The JSON-RPC 2.0 envelope of A2A: requests in, results and errors out, and the error codes of both.

Sans-I/O. Deliberately not here: the methods and their parameters, which each protocol version has its own of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from isthmus.errors import IsthmusError
from isthmus.json_text import JsonError, decode, encode

MAX_BRACKETS = 1_000_000
"""How many arrays and objects a request may have, at the most; in texts they are counted, too."""
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
PUSH_NOT_SUPPORTED = -32003
UNSUPPORTED_OPERATION = -32004
CONTENT_TYPE_NOT_SUPPORTED = -32005
INVALID_AGENT_RESPONSE = -32006
NO_EXTENDED_CARD = -32007
EXTENSION_REQUIRED = -32008
VERSION_NOT_SUPPORTED = -32009
LIMIT_REACHED = -32000
"""Our own, out of the range that JSON-RPC leaves to servers: a cap of the user or of the server is reached."""

RequestId: TypeAlias = str | int | float | None


class RpcError(IsthmusError):
    """A request that is answered with a JSON-RPC error: its ``code``, and ``data`` for programs."""

    def __init__(self, code: int, message: str, data: "Mapping[str, Any] | list[Any] | None" = None) -> None:
        self.code = code
        self.data = data
        super().__init__(message)


class InvalidParamsError(RpcError):
    """A parameter does not fit; ``field`` is its path, e.g. ``params.message.messageId``."""

    def __init__(self, field: str, expected: str) -> None:
        self.field = field
        super().__init__(INVALID_PARAMS, f"{field}: {expected}", {"field": field})


@dataclass(frozen=True, slots=True)
class Request:
    """A decoded request; ``id`` is None when the client gave none."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


def decode_value(body: bytes) -> Any:
    """The JSON value of a request body.

    Raises:
        RpcError: -32700.
    """
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        # Each costs many times its byte, in memory and in time that nobody else is served.
        raise RpcError(PARSE_ERROR, f"the request has more than {MAX_BRACKETS} opening brackets, in texts or outside")
    try:
        return decode(body)
    except JsonError as error:
        raise RpcError(PARSE_ERROR, f"the request is not JSON that this server reads: {error}") from error


def id_of(value: Any) -> RequestId:
    """The id that an answer to this value carries, None when it has none that is allowed."""
    found = cast("Mapping[str, Any]", value).get("id") if isinstance(value, Mapping) else None
    return found if isinstance(found, (str, int, float)) and not isinstance(found, bool) else None


def decode_request(value: Any) -> Request:
    """The request in a JSON value.

    Raises:
        RpcError: -32600, or -32602 when the parameters are not an object.
    """
    if isinstance(value, list):
        raise RpcError(INVALID_REQUEST, "expected one JSON-RPC request; A2A has no batches")
    if not isinstance(value, Mapping):
        raise RpcError(INVALID_REQUEST, "expected a JSON-RPC request, which is an object")
    source = cast("Mapping[str, Any]", value)
    if source.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc: expected "2.0"')
    if source.get("id") is not None and id_of(source) is None:
        raise RpcError(INVALID_REQUEST, "id: expected a string or a number")
    method = source.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method: expected the name of a method")
    params = source.get("params")
    if params is None:
        params = {}
    if not isinstance(params, Mapping):
        raise InvalidParamsError("params", "expected an object")
    return Request(id_of(source), method, cast("Mapping[str, Any]", params))


def encode_request(request: Request) -> bytes:
    """The body of a request."""
    return encode({"jsonrpc": "2.0", "id": request.id, "method": request.method, "params": request.params})


def encode_result(request_id: RequestId, result: object) -> bytes:
    """The body of a successful answer."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(request_id: RequestId, error: RpcError) -> bytes:
    """The body of an answer that refuses."""
    content: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        content["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": content})
