"""Admits HTTP requests to the MCP endpoint by token, Host, Origin, path and method, in that order. No I/O.

Only the head of a request is checked, before its body is read. Refusals have the form of the real companion's, where
it has one.
"""

from collections.abc import Iterable

from isthmus.encoding.codec import JsonObject
from isthmus.listeners.gate import Fault, bearer_token, find_fault
from isthmus.network.loopback import host_headers
from isthmus.record import record

ENDPOINT = "/mcp"
METHODS = ("GET", "POST", "DELETE")
MAXIMUM_BODY_BYTES = 10 * 1024 * 1024


@record
class HttpRefusal:
    """Refusal of a request, with the HTTP ``status`` and a JSON ``body``."""

    status: int
    body: JsonObject
    headers: tuple[tuple[str, str], ...] = ()


@record
class Head:
    """Head of an admitted request. Header values are None if absent."""

    method: str
    session_id: str | None
    last_event_id: str | None
    protocol_version: str | None
    accept: str | None
    content_type: str | None
    content_length: int | None


class HttpGate:
    """Check of requests against one token and one port."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self._hosts = host_headers(port)

    def check(self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> Head | HttpRefusal:
        """Return the head of an allowed request, or its refusal. Header names are lowercase, as in ASGI."""
        fields: dict[str, list[str]] = {}
        for name, value in headers:
            fields.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        tokens = [bearer_token(value) or "" for value in fields.get("authorization", ())]
        hosts, origins = fields.get("host", ()), fields.get("origin", ())
        match find_fault(tokens, self._token, hosts, origins, self._hosts.__contains__):
            case None:
                pass
            case Fault.NO_TOKEN | Fault.WRONG_TOKEN:
                body = {"error": "Unauthorized: expected Authorization: Bearer with this server's token"}
                return HttpRefusal(401, body, (("www-authenticate", "Bearer"),))
            case Fault.HOST:
                return HttpRefusal(403, {"error": "Invalid Host header", "expected": ", ".join(self._hosts)})
            case Fault.ORIGIN:
                return HttpRefusal(403, {"error": "Request denied by CORS policy.", "expected": "no Origin header"})
        if path != ENDPOINT:
            return HttpRefusal(404, {"error": f"Not found; the only endpoint is {ENDPOINT}"})
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            return HttpRefusal(405, {"error": f"Method not allowed; expected {allowed}"}, (("allow", allowed),))
        return _head(method, fields)


def _head(method: str, fields: dict[str, list[str]]) -> Head:
    def last(name: str) -> str | None:
        return fields[name][-1] if name in fields else None

    length = last("content-length") or ""
    return Head(
        method,
        last("mcp-session-id"),
        last("last-event-id"),
        last("mcp-protocol-version"),
        last("accept"),
        last("content-type"),
        int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None,
    )
