"""A2A 1.0 over HTTP and JSON: paths and query parameters into the methods of 1.0, errors into HTTP statuses.

A request becomes the same method with the same parameters as in JSON-RPC, so that all else is shared. Deliberately not
here: what methods mean (:mod:`isthmus.a2a.v1.wire`), paths with a tenant, and the REST form of 0.3.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import unquote

from starlette.responses import Response
from starlette.types import Scope

from isthmus.a2a.jsonrpc import (
    CONTENT_TYPE_NOT_SUPPORTED,
    EXTENSION_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LIMIT_REACHED,
    METHOD_NOT_FOUND,
    NO_EXTENDED_CARD,
    PARSE_ERROR,
    PUSH_NOT_SUPPORTED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    InvalidParamsError,
    Request,
    RpcError,
    decode_value,
)
from isthmus.a2a.server.sse import event_frame
from isthmus.json_text import encode

MEDIA_TYPE = "application/json"
A2A_MEDIA_TYPE = "application/a2a+json"
"""For clients that accept this one and not the other."""

_TASK = r"/tasks/(?P<id>[^/:]+)"
_PUSHES = r"/tasks/(?P<taskId>[^/:]+)/pushNotificationConfigs"
_ROUTES: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...] = tuple(
    (re.compile(pattern), methods)
    for pattern, methods in (
        (r"/message:send", {"POST": "SendMessage"}),
        (r"/message:stream", {"POST": "SendStreamingMessage"}),
        (r"/tasks", {"GET": "ListTasks"}),
        (_TASK, {"GET": "GetTask"}),
        (rf"{_TASK}:cancel", {"POST": "CancelTask"}),
        # Documents of 1.0 have GET, and POST was there before it.
        (rf"{_TASK}:subscribe", {"GET": "SubscribeToTask", "POST": "SubscribeToTask"}),
        (_PUSHES, {"POST": "CreateTaskPushNotificationConfig", "GET": "ListTaskPushNotificationConfigs"}),
        (
            rf"{_PUSHES}/(?P<id>[^/]+)",  # a client's own choice, so with a colon, too
            {"GET": "GetTaskPushNotificationConfig", "DELETE": "DeleteTaskPushNotificationConfig"},
        ),
        (r"/extendedAgentCard", {"GET": "GetExtendedAgentCard"}),
    )
)
_STATUSES: Mapping[int, tuple[int, str]] = MappingProxyType(
    {
        PARSE_ERROR: (400, "INVALID_ARGUMENT"),
        INVALID_REQUEST: (400, "INVALID_ARGUMENT"),
        METHOD_NOT_FOUND: (404, "NOT_FOUND"),
        INVALID_PARAMS: (400, "INVALID_ARGUMENT"),
        INTERNAL_ERROR: (500, "INTERNAL"),
        LIMIT_REACHED: (429, "RESOURCE_EXHAUSTED"),
        TASK_NOT_FOUND: (404, "NOT_FOUND"),
        TASK_NOT_CANCELABLE: (400, "FAILED_PRECONDITION"),
        PUSH_NOT_SUPPORTED: (400, "FAILED_PRECONDITION"),
        UNSUPPORTED_OPERATION: (400, "FAILED_PRECONDITION"),
        CONTENT_TYPE_NOT_SUPPORTED: (415, "INVALID_ARGUMENT"),
        NO_EXTENDED_CARD: (400, "FAILED_PRECONDITION"),
        EXTENSION_REQUIRED: (400, "FAILED_PRECONDITION"),
        VERSION_NOT_SUPPORTED: (400, "FAILED_PRECONDITION"),
    }
)
_COLON = re.compile("%3a", re.IGNORECASE)
_NUMBERS = ("historyLength", "history_length", "pageSize", "page_size", "status")
_FLAGS = ("includeArtifacts", "include_artifacts")


def raw_path(scope: Scope) -> str:
    """The path as it was sent, so that an escaped slash or percent sign in an id is a part of it."""
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else _COLON.sub(":", raw.decode("latin-1"))


def allowed_methods(path: str) -> tuple[str, ...]:
    """The HTTP methods of a path as it was sent; none for one that is no path of A2A 1.0."""
    found = _find(path)
    return () if found is None else tuple(found[1])


def rest_request(method: str, path: str, query: Iterable[tuple[str, str]], body: bytes) -> Request:
    """The request that an HTTP request stands for. What stands in the path counts more than what the body says.

    Raises:
        RpcError: the body is no JSON object, a query parameter does not fit, or there is no such path.
    """
    found = _find(path)
    if found is None or method not in found[1]:
        raise RpcError(METHOD_NOT_FOUND, f"A2A 1.0 has no {method} {path[:200]}")
    params = _body(body) if method == "POST" else _query(query)
    named = {name: unquote(value) for name, value in found[0].items()}
    for name in ("task_id",) if "taskId" in named else ():
        params.pop(name, None)
    return Request(None, found[1][method], {**params, **named})


class RestFraming:
    """See :class:`isthmus.a2a.server.framing.Framing`; each method is that of the port.

    ``accept`` are the values of the header of that name.
    """

    def __init__(self, accept: Iterable[str] = ()) -> None:
        accepted = ",".join(accept).lower()
        is_asked = A2A_MEDIA_TYPE in accepted and MEDIA_TYPE not in accepted
        self._media_type = A2A_MEDIA_TYPE if is_asked else MEDIA_TYPE

    def item(self, item: object, seq: int | None = None) -> bytes:
        """A StreamResponse as it is."""
        return event_frame(encode(item), seq)

    def error_item(self, error: RpcError) -> bytes:
        """An event named ``error``."""
        return b"event: error\n" + event_frame(_error(error)[1])

    def result(self, result: object, headers: Mapping[str, str]) -> Response:
        """The object as it is."""
        return Response(encode(result), 200, headers, self._media_type)

    def failure(self, error: RpcError, headers: Mapping[str, str]) -> Response:
        """A ``google.rpc.Status`` with the HTTP status of its code."""
        status, body = _error(error)
        return Response(body, status, headers, self._media_type)


_HTTP_STATUSES: Mapping[int, str] = MappingProxyType(
    {
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        405: "UNIMPLEMENTED",
        408: "DEADLINE_EXCEEDED",
        413: "INVALID_ARGUMENT",
        415: "INVALID_ARGUMENT",
        429: "RESOURCE_EXHAUSTED",
    }
)
"""What refusals by HTTP status alone are called."""


def refusal(status: int, message: str, headers: Mapping[str, str]) -> Response:
    """A ``google.rpc.Status`` for what is refused before it is a request of A2A."""
    content = {"code": status, "status": _HTTP_STATUSES.get(status, "INTERNAL"), "message": message}
    return Response(encode({"error": content}), status, headers, MEDIA_TYPE)


def _find(path: str) -> tuple[dict[str, str], Mapping[str, str]] | None:
    for pattern, methods in _ROUTES:
        found = pattern.fullmatch(path)
        if found is not None:
            return found.groupdict(), methods
    return None


def _error(error: RpcError) -> tuple[int, bytes]:
    code, status = _STATUSES.get(error.code, (500, "INTERNAL"))
    content: dict[str, Any] = {"code": code, "status": status, "message": str(error)}
    if error.data is not None:
        content["details"] = error.data
    return code, encode({"error": content})


def _body(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    value = decode_value(body)
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "expected a JSON object as the body")
    return cast("dict[str, Any]", value)


def _query(query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name, value in query:
        if name in _NUMBERS and value.isascii() and value.isdecimal() and len(value) < 20:
            params[name] = int(value)
        elif name in _FLAGS:
            if value not in ("true", "false"):
                raise InvalidParamsError(f"params.{name}", "expected true or false")
            params[name] = value == "true"
        else:
            params[name] = value
    return params
