"""Admits HTTP requests to the MCP endpoint by token, Host, Origin, path and method, in that order. No I/O.

Decides on the head of a request alone, before any of its body is read. Refusals are answered as the real companion
does, where it has an answer.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from isthmus.encoding.codec import JsonObject
from isthmus.ide.loopback import hosts

ENDPOINT = "/mcp"
METHODS = ("GET", "POST", "DELETE")
MAXIMUM_BODY_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """Refusal of a request: the HTTP ``status``, and ``body`` as JSON."""

    status: int
    body: JsonObject
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an admitted request. Header values are None if absent."""

    method: str
    session_id: str | None
    last_event_id: str | None
    protocol_version: str | None
    accept: str | None
    content_type: str | None
    content_length: int | None


class HttpGate:
    """Checks requests against one token and one port."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode()
        self._hosts = frozenset(host.encode() for host in hosts(port))
        self._expected_hosts = ", ".join(hosts(port))

    def check(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Head | HttpRefusal:
        """Return the head of an allowed request, or its refusal. Header names are lowercase, as in ASGI."""
        fields: dict[bytes, bytes] = {}
        repeated: set[bytes] = set()
        for name, value in headers:
            if name in fields:
                repeated.add(name)
            fields[name] = value
        if b"authorization" in repeated or not self._authorized(fields.get(b"authorization", b"")):
            challenge = (("www-authenticate", "Bearer"),)
            return HttpRefusal(
                401, {"error": "Unauthorized: expected Authorization: Bearer with this server's token"}, challenge
            )
        if fields.get(b"host", b"").lower() not in self._hosts:
            return HttpRefusal(403, {"error": "Invalid Host header", "expected": self._expected_hosts})
        if b"origin" in fields:
            return HttpRefusal(403, {"error": "Request denied by CORS policy.", "expected": "no Origin header"})
        if path != ENDPOINT:
            return HttpRefusal(404, {"error": f"Not found; the only endpoint is {ENDPOINT}"})
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            return HttpRefusal(405, {"error": f"Method not allowed; expected {allowed}"}, (("allow", allowed),))
        return _head(method, fields)

    def _authorized(self, value: bytes) -> bool:
        scheme, _, token = value.partition(b" ")
        return hmac.compare_digest(token.strip(), self._token) and scheme.lower() == b"bearer"


def _head(method: str, fields: dict[bytes, bytes]) -> Head:
    def text(name: bytes) -> str | None:
        value = fields.get(name)
        return value.decode("latin-1") if value is not None else None

    length = fields.get(b"content-length", b"")
    return Head(
        method,
        text(b"mcp-session-id"),
        text(b"last-event-id"),
        text(b"mcp-protocol-version"),
        text(b"accept"),
        text(b"content-type"),
        int(length) if length.isdigit() and len(length) < 20 else None,
    )
