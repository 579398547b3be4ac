"""JSON-RPC 2.0 in A2A: reading requests, and the codes of errors. Sans-I/O.

Methods and their parameters belong to the protocol versions (:mod:`isthmus.a2a.v03`, :mod:`isthmus.a2a.v1`).
"""

from collections.abc import Mapping
from typing import Any, cast

from isthmus.encoding.json_text import JsonError, decode
from isthmus.encoding.value_count import has_more_values
from isthmus.rpc import messages as rpc

MAX_VALUES = 500_000
"""Maximum number of JSON values in a request: texts, numbers, lists, objects and so on."""
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
"""Our own code, from the range that JSON-RPC leaves to servers: a limit of the user or the server is reached."""
UNAVAILABLE = -32050
"""Our own code, from the same range: the server cannot do it at the moment; the same may be asked again."""

_ID_TYPES = (str, int, float)
_RULES = rpc.Rules(
    not_object="expected a JSON-RPC request, which is an object",
    batch="expected one JSON-RPC request; A2A has no batches",
    members={
        "jsonrpc": 'jsonrpc: expected "2.0"',
        "id": "id: expected a string or a number",
        "method": "method: expected the name of a method",
        "params": "expected an object",
    },
    id_types=_ID_TYPES,
    allows_null_id=True,
)


class InvalidParamsError(rpc.RpcError):
    """A parameter is invalid; ``field`` is its path, e.g. ``params.message.messageId``."""

    def __init__(self, field: str, expected: str) -> None:
        self.field = field
        super().__init__(rpc.INVALID_PARAMS, f"{field}: {expected}", {"field": field})


def decode_value(body: bytes) -> Any:
    """Return the JSON value of a request body.

    Raises:
        RpcError: it is not JSON, or too deep or large to be read (-32700).
    """
    if has_more_values(body, MAX_VALUES):
        # Each costs far more memory than its few bytes, and time in which no other request is served.
        raise rpc.RpcError(
            rpc.PARSE_ERROR,
            f"the request has more than {MAX_VALUES:,} JSON values; send many values as the text of a file",
        )
    try:
        return decode(body)
    except JsonError as error:
        raise rpc.RpcError(rpc.PARSE_ERROR, f"the request is not JSON that this server reads: {error}") from error


def id_of(value: Any) -> rpc.RequestId | None:
    """Return the id for the answer to a JSON value; None when it does not have a valid one."""
    return rpc.as_id(cast("Mapping[str, Any]", value).get("id"), _ID_TYPES) if isinstance(value, Mapping) else None


def decode_request(value: Any) -> rpc.Request | rpc.Notification:
    """Return the request in a JSON value; one without an id is answered as well.

    Raises:
        RpcError: it is not a request (-32600), or its parameters are not an object (-32602).
    """
    match rpc.message_of(value, _RULES):
        case rpc.Request() | rpc.Notification() as request:
            return request
        case rpc.ParseError(code=rpc.INVALID_PARAMS, text=text):
            raise InvalidParamsError("params", text)
        case rpc.ParseError(code=code, text=text):
            raise rpc.RpcError(code, text)
        case rpc.Response() | rpc.ErrorResponse():  # our rules exclude these
            raise rpc.RpcError(rpc.INVALID_REQUEST, _RULES.members["method"])
