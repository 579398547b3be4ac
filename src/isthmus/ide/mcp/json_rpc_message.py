"""JSON-RPC 2.0 messages of the companion's connections, as JSON objects: their ids, error codes and bytes. Pure.

Deliberately not here: what a message leads to (:mod:`mcp_peer`, :mod:`mcp_client`, :mod:`isthmus.editors.json_rpc`),
and the envelope of A2A, whose error codes are its own.
"""

import json
from typing import Any, NoReturn, TypeAlias

from isthmus.codec import JsonObject
from isthmus.json_text import JsonError

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
SERVER_ERROR = -32000
"""JSON-RPC leaves the meaning to the server: here, that it cannot take more work now."""

RequestId: TypeAlias = int | str
Message: TypeAlias = dict[str, Any]


def request(request_id: RequestId, method: str, params: JsonObject) -> Message:
    """A request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: JsonObject) -> Message:
    """A notification: nobody answers it."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def response(request_id: RequestId, result: object) -> Message:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: RequestId | None, code: int, text: str) -> Message:
    """An error response; ``request_id`` None when what came could not be read."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}


def request_id_of(message: JsonObject) -> RequestId | None:
    """The id in a message; None when it has none, or one that is no string and no whole number."""
    value = message.get("id")
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None


def decode(data: bytes | str) -> object:
    """What a message holds, as text or in UTF-8.

    Unlike :mod:`isthmus.json_text`, unpaired surrogates pass: they are how names of files that are not UTF-8 travel.

    Raises:
        JsonError: it is no JSON.
    """
    try:
        return _DECODER.decode(data if isinstance(data, str) else data.decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise JsonError("the JSON is nested too deeply") from error
    except ValueError as error:  # of UTF-8, too
        raise JsonError(str(error)) from error


def encode(message: JsonObject) -> bytes:
    """One message as JSON without line breaks; ASCII only, so that unpaired surrogates pass too."""
    return _ENCODER.encode(message).encode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


# Made once: what is made for each message costs as much as a small message itself.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(separators=(",", ":"))
