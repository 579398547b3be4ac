"""A2A over HTTP and JSON: translates paths and queries into methods of JSON-RPC, and errors into HTTP statuses.

A request becomes the same method with the same parameters as in JSON-RPC, so that everything else is shared. A
:class:`RestBinding` has what differs between versions; they are listed in :mod:`isthmus.a2a.server.rest_bindings`.
Paths with a tenant are not served.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from starlette.responses import Response
from starlette.types import Scope
from typing_extensions import override

from isthmus.a2a.protocol.errors import retry_headers
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError, decode_value
from isthmus.a2a.server.framing import Framing, PiecewiseResponse
from isthmus.encoding.codec import camel
from isthmus.encoding.event_stream import event_frame
from isthmus.encoding.json_text import encode
from isthmus.record import record
from isthmus.rpc.messages import INVALID_REQUEST, METHOD_NOT_FOUND, Notification, RpcError

MEDIA_TYPE = "application/json"
Routes: TypeAlias = tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]
"""Patterns of paths, each with the method of A2A for each HTTP method; named groups are parameters."""

_COLON = re.compile("%3a", re.IGNORECASE)
_NUMBERS = ("historyLength", "pageSize", "status", "limit")
_FLAGS = ("includeArtifacts",)


@record
class RestBinding:
    """One version of A2A over HTTP and JSON."""

    version: str
    routes: Routes
    params: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    """Function that returns the parameters for a method and the body of a request."""
    error: Callable[[RpcError], tuple[int, object]]
    """Function that returns the HTTP status and the body for an error."""
    refusal: Callable[[int, str], object]
    """Function that returns the body for a refusal, given its HTTP status and message."""
    media_types: tuple[str, ...] = (MEDIA_TYPE,)
    """Media types of responses: the first one, unless the client accepts only another one."""

    def find(self, path: str) -> tuple[dict[str, str], Mapping[str, str]] | None:
        """Return the named parts of a path in its sent form, and its methods; None for an unknown path."""
        for pattern, methods in self.routes:
            found = pattern.fullmatch(path)
            if found is not None:
                return found.groupdict(), methods
        return None

    def request(self, method: str, path: str, query: Iterable[tuple[str, str]], body: bytes) -> Notification:
        """Return the JSON-RPC call for an HTTP request. It has no id: HTTP carries the answer.

        Values in the path take precedence over those in the body.

        Raises:
            RpcError: the body is not a JSON object, a query parameter is invalid, or the path is unknown.
        """
        found = self.find(path)
        if found is None or method not in found[1]:
            raise RpcError(METHOD_NOT_FOUND, f"A2A {self.version} has no {method} {path[:200]}")
        name = found[1][method]
        params = self.params(name, _body(body)) if method == "POST" else _query(query)
        named = {parameter: unquote(value) for parameter, value in found[0].items()}
        if "taskId" in named:
            params.pop("task_id", None)
        return Notification(name, {**params, **named})


def routes_of(table: Mapping[str, Mapping[str, str]]) -> Routes:
    """Return the routes in a table of regular expressions, each with the method of A2A for each HTTP method."""
    return tuple((re.compile(pattern), methods) for pattern, methods in table.items())


def raw_path(scope: Scope) -> str:
    """Return the path in its sent form, so that an escaped slash or percent sign in an id remains part of the id."""
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else _COLON.sub(":", raw.decode("latin-1"))


class RestFraming(Framing):
    """The framing of a REST request. ``accept`` are the values of the header Accept."""

    def __init__(self, binding: RestBinding, accept: Iterable[str] = ()) -> None:
        self._binding = binding
        accepted = ",".join(accept).lower()
        first, *others = binding.media_types
        asked = (each for each in others if each in accepted and first not in accepted)
        self._media_type = next(asked, first)

    @override
    def item(self, item: object, seq: int | None = None) -> bytes:
        return event_frame(encode(item), seq)

    @override
    def error_item(self, error: RpcError) -> bytes:
        return event_frame(encode(self._binding.error(error)[1]), name="error")

    @override
    def result(self, result: object, headers: Mapping[str, str]) -> Response:
        return PiecewiseResponse(encode(result), 200, headers, self._media_type)

    @override
    def failure(self, error: RpcError, headers: Mapping[str, str]) -> Response:
        status, content = self._binding.error(error)
        return Response(encode(content), status, {**headers, **retry_headers(error)}, self._media_type)


def refusal(binding: RestBinding, status: int, message: str, headers: Mapping[str, str]) -> Response:
    """Return the response to a request that is refused before it is read, as the version of A2A writes it."""
    return Response(encode(binding.refusal(status, message)), status, headers, MEDIA_TYPE)


def _body(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    value = decode_value(body)
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "expected a JSON object as the body")
    return cast("dict[str, Any]", value)


def _query(query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for stated, value in query:
        name = camel(stated)
        if name in _NUMBERS and value.isascii() and value.isdecimal() and len(value) < 20:
            params[name] = int(value)
        elif name in _FLAGS:
            if value not in ("true", "false"):
                raise InvalidParamsError(f"params.{name}", "expected true or false")
            params[name] = value == "true"
        else:
            params[name] = value
    return params
