"""A2A over HTTP and JSON: paths and query parameters into the methods of JSON-RPC, errors into HTTP statuses.

A request becomes the same method with the same parameters as in JSON-RPC, so that all else is shared. What differs
between versions is a :class:`RestBinding`, of which there is one in :mod:`isthmus.a2a.server.rest_v1` and one in
:mod:`isthmus.a2a.server.rest_v03`. Deliberately not here: what methods mean (the wires), and paths with a tenant.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from starlette.responses import Response
from starlette.types import Scope

from isthmus.a2a.protocol.jsonrpc import InvalidParamsError, decode_value
from isthmus.a2a.server.sse import event_frame
from isthmus.encoding.codec import camel
from isthmus.encoding.json_text import encode
from isthmus.rpc.messages import INVALID_REQUEST, METHOD_NOT_FOUND, Notification, RpcError

MEDIA_TYPE = "application/json"
Routes: TypeAlias = tuple[tuple[re.Pattern[str], Mapping[str, str]], ...]
"""Patterns of paths, each with the method of A2A for each HTTP method; groups are named as parameters."""

_COLON = re.compile("%3a", re.IGNORECASE)
_NUMBERS = ("historyLength", "pageSize", "status", "limit")
_FLAGS = ("includeArtifacts",)


@dataclass(frozen=True, slots=True)
class RestBinding:
    """How one version of A2A is spoken over HTTP and JSON.

    ``params`` makes parameters of the method that is named and a body. ``error`` gives the HTTP status of an error and
    what is told of it; ``refusal`` what is told of a refusal by HTTP status and message. ``media_types`` are what
    answers are called: the first one, or another that a client accepts without the first.
    """

    version: str
    routes: Routes
    params: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    error: Callable[[RpcError], tuple[int, object]]
    refusal: Callable[[int, str], object]
    media_types: tuple[str, ...] = (MEDIA_TYPE,)

    def find(self, path: str) -> tuple[dict[str, str], Mapping[str, str]] | None:
        """Return the named parts of a path as it was sent, and the methods there; None for a path that there is not."""
        for pattern, methods in self.routes:
            found = pattern.fullmatch(path)
            if found is not None:
                return found.groupdict(), methods
        return None

    def request(self, method: str, path: str, query: Iterable[tuple[str, str]], body: bytes) -> Notification:
        """Return the call that an HTTP request stands for, without an id: HTTP carries the answer.

        What stands in the path counts more than what the body says.

        Raises:
            RpcError: the body is no JSON object, a query parameter does not fit, or there is no such path.
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
    """Routes out of regular expressions, each with the method of A2A for each HTTP method."""
    return tuple((re.compile(pattern), methods) for pattern, methods in table.items())


def raw_path(scope: Scope) -> str:
    """Return the path as it was sent, so that an escaped slash or percent sign in an id is a part of it."""
    raw: bytes | None = scope.get("raw_path")
    return scope["path"] if raw is None else _COLON.sub(":", raw.decode("latin-1"))


class RestFraming:
    """See :class:`isthmus.a2a.server.framing.Framing`; each method is that of the port.

    ``accept`` are the values of the header of that name.
    """

    def __init__(self, binding: RestBinding, accept: Iterable[str] = ()) -> None:
        self._binding = binding
        accepted = ",".join(accept).lower()
        first, *others = binding.media_types
        asked = (each for each in others if each in accepted and first not in accepted)
        self._media_type = next(asked, first)

    def item(self, item: object, seq: int | None = None) -> bytes:
        """Return a StreamResponse as it is."""
        return event_frame(encode(item), seq)

    def error_item(self, error: RpcError) -> bytes:
        """Return an event named ``error``."""
        return b"event: error\n" + event_frame(encode(self._binding.error(error)[1]))

    def result(self, result: object, headers: Mapping[str, str]) -> Response:
        """Return the object as it is."""
        return Response(encode(result), 200, headers, self._media_type)

    def failure(self, error: RpcError, headers: Mapping[str, str]) -> Response:
        """Return the error in the words of the version, with the HTTP status of its code."""
        status, content = self._binding.error(error)
        return Response(encode(content), status, headers, self._media_type)


def refusal(binding: RestBinding, status: int, message: str, headers: Mapping[str, str]) -> Response:
    """Return the answer to what is refused before it is a request of A2A, in the words of the version."""
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
