"""JSON-RPC 2.0: the messages in decoded JSON, and messages as JSON objects. No I/O.

Protocols differ in the messages that they accept, and in the words in which they refuse others: these are
:class:`Rules`. The bytes of a message, and its end, are theirs, too.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.record import record

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
"""Code whose meaning JSON-RPC leaves to the server."""

MEMBERS: tuple[str, ...] = ("jsonrpc", "method", "id", "params")
"""Members of a message that can be wrong."""

RequestId: TypeAlias = int | float | str
JsonMessage: TypeAlias = dict[str, Any]
"""A message as it is encoded."""


class RpcError(IsthmusError):
    """A request that is answered with an error. ``code`` is 0 if the wire has none; ``data`` is for programs."""

    def __init__(self, code: int, text: str, data: Mapping[str, Any] | list[Any] | None = None) -> None:
        self.code = code
        self.data = data
        super().__init__(text)


# A decoded message. A closed union: match with assert_never.


@record
class Request:
    """A call that waits for a response with its ``id``. ``params`` is an object where the rules check it."""

    id: RequestId
    method: str
    params: Any


@record
class Notification:
    """A call without an id. ``params`` is an object where the rules check it."""

    method: str
    params: Any


@record
class Response:
    """The result of our request ``id``."""

    id: RequestId
    result: Any


@record
class ErrorResponse:
    """The error of our request ``id``; None if the peer could not read a message of ours."""

    id: RequestId | None
    code: int
    text: str
    data: Any = None


@record
class ParseError:
    """A value that is not a message: the error to answer it with, and its ``id`` if it has one nevertheless."""

    id: RequestId | None
    code: int
    text: str


Message: TypeAlias = Request | Notification | Response | ErrorResponse | ParseError


@record
class Rules:
    """Messages that a protocol accepts, and the words in which it refuses other values.

    In these words ``{received}`` is the kind of value that was received, and ``{method}`` the message's method.
    """

    not_object: str
    batch: str
    members: Mapping[str, str]
    """Words for each member that is checked (``method``; ``jsonrpc``, ``id``, ``params``), in order of checking."""
    id_types: tuple[type, ...] = (int, str)
    allows_null_id: bool = False
    """Whether a request with the id null counts as a notification."""
    response_id_types: tuple[type, ...] = ()
    """Types of the ids of responses, NoneType for errors without one; empty if no responses are read."""


def message_of(value: object, rules: Rules) -> Message:
    """Return the message in a JSON value; never raise."""
    if isinstance(value, list):
        return ParseError(None, INVALID_REQUEST, rules.batch)
    if not isinstance(value, dict):
        return ParseError(None, INVALID_REQUEST, rules.not_object.format(received=kind_of(value)))
    message = cast("JsonObject", value)
    method, params = message.get("method"), message.get("params")
    request_id = as_id(message.get("id"), rules.id_types)
    if (
        isinstance(method, str)
        and isinstance(params, dict)
        and message.get("jsonrpc") == "2.0"
        and request_id is not None
    ):
        return Request(request_id, method, cast("JsonObject", params))  # as nearly all are: nothing can be wrong
    is_response = (
        method is None
        and isinstance(request_id, rules.response_id_types)
        and ("error" in message or ("result" in message and request_id is not None))
    )
    is_wrong = (
        message.get("jsonrpc") != "2.0",
        not (isinstance(method, str) or is_response),
        request_id is None and "id" in message and not (rules.allows_null_id and message["id"] is None),
        not (params is None or isinstance(params, dict) or is_response),
    )
    if True in is_wrong:
        wrong = dict(zip(MEMBERS, is_wrong, strict=True))
        for member, text in rules.members.items():
            if wrong[member]:
                code = INVALID_PARAMS if member == "params" else INVALID_REQUEST
                return ParseError(request_id, code, text.format(received=kind_of(message.get(member)), method=method))
    if not isinstance(method, str):  # else it is refused above
        return _response(request_id, message)
    if params is None and "params" in rules.members:
        params = {}
    return Notification(method, params) if request_id is None else Request(request_id, method, params)


def _response(request_id: RequestId | None, message: JsonObject) -> Response | ErrorResponse:
    error = message.get("error")
    if request_id is not None and (error is None or ("result" in message and not isinstance(error, dict))):
        return Response(request_id, message.get("result"))
    fields = cast("JsonObject", error if isinstance(error, dict) else {})
    code, text = fields.get("code"), fields.get("message")
    return ErrorResponse(
        request_id,
        code if isinstance(code, int) else 0,
        text if isinstance(text, str) and text else "failed without a reason",
        fields.get("data"),
    )


def as_id(value: object, types: tuple[type, ...] = (int, str)) -> RequestId | None:
    """Return a value if it may be an id, or else None."""
    return cast("RequestId", value) if isinstance(value, types) and not isinstance(value, bool) else None


def kind_of(value: object) -> str:
    """Return the words for the kind of a JSON value, such as "a string"."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def request(request_id: RequestId, method: str, params: JsonObject | None) -> JsonMessage:
    """Return a request, without ``params`` if they are None."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method} | ({} if params is None else {"params": params})


def notification(method: str, params: JsonObject) -> JsonMessage:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def response(request_id: RequestId | None, result: object) -> JsonMessage:
    """Return the response to a request; ``request_id`` is None if the request had no id."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: RequestId | None, code: int, text: str, data: object = None) -> JsonMessage:
    """Return an error response; ``request_id`` is None if the request could not be read."""
    error = {"code": code, "message": text} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}
