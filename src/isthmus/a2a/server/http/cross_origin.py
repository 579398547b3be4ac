"""Web pages of other origins that may use the server, and what browsers are told about it (CORS). Sans-I/O.

Every page may read the public card. Pages of the origins that the owner names may send A2A requests, with a token and
never with cookies. The workbench and the probes are for the server's own page alone.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from starlette.responses import Response
from starlette.types import Message, Send

from isthmus.a2a.protocol.extension import NOTES_HEADER, PROMPTS_HEADER
from isthmus.errors import IsthmusError
from isthmus.record import record

PREFLIGHT_SECONDS = 600
"""Time in seconds for which browsers may keep the answer to a preflight request."""

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_REQUEST_HEADERS = ", ".join(
    (
        "Authorization",
        "Content-Type",
        "A2A-Version",
        "A2A-Extensions",
        "X-A2A-Extensions",
        "Last-Event-ID",
        "If-None-Match",
        PROMPTS_HEADER,
        NOTES_HEADER,
        "traceparent",
        "tracestate",
    )
)
_RESPONSE_HEADERS = "A2A-Extensions, X-A2A-Extensions, WWW-Authenticate, Retry-After, ETag"
_VARY: Mapping[str, str] = {"Vary": "Origin"}


class OriginError(IsthmusError, ValueError):
    """A text is not the origin of web pages."""


class Sharing(Enum):
    """Web pages whose requests a path takes."""

    EVERY_PAGE = auto()
    """All pages, which may only read: the path is public."""
    NAMED_PAGES = auto()
    """The server's own page, and pages of the named origins."""
    OWN_PAGE = auto()
    """The server's own page alone."""


def read_origin(text: str) -> str:
    """Return an origin as browsers send it: in lowercase, without the port that its scheme implies.

    Raises:
        OriginError: it is not one origin; the text says what is expected.
    """
    origin = text.lower()
    if _ORIGIN.fullmatch(origin) is None:
        raise OriginError(
            f"{text[:200]!r} is not the origin of web pages: expected scheme, host and perhaps port, without a path,"
            " such as https://app.example.org or http://localhost:5173; each origin has to be named, '*' is not taken"
        )
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition("://")[0], "/"))


@record
class CrossOrigin:
    """Rule for web pages of other origins; pages of the origins ``named`` may send A2A requests."""

    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, origins: Iterable[str]) -> "CrossOrigin":
        """Return the rule with these origins.

        Raises:
            OriginError: one of them is not an origin.
        """
        return cls(frozenset(read_origin(each) for each in origins))

    def permits(self, sharing: Sharing, method: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request with an Origin is taken although its page may be of another origin."""
        match sharing:
            case Sharing.EVERY_PAGE:
                return method in ("GET", "HEAD") or _is_preflight(method, headers)
            case Sharing.NAMED_PAGES:
                # A cookie would be that of a user whom the program around the server knows, not one of the page.
                return headers["origin"].lower() in self.named and "cookie" not in headers
            case Sharing.OWN_PAGE:
                return False

    def headers(self, sharing: Sharing, origin: str | None) -> Mapping[str, str]:
        """Return the headers that let a page of ``origin`` read a response; None: of no permitted page."""
        if sharing is Sharing.EVERY_PAGE:
            return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag"}
        if sharing is Sharing.OWN_PAGE or not self.named:
            return {}
        if origin is None:
            return _VARY
        return {
            **_VARY,
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": _RESPONSE_HEADERS,
        }

    def preflight(self, sharing: Sharing, method: str, headers: Mapping[str, str]) -> Response | None:
        """Return the answer to a preflight request that is permitted; None for any other request."""
        if not _is_preflight(method, headers):
            return None
        told = {
            "Access-Control-Allow-Methods": "GET, HEAD" if sharing is Sharing.EVERY_PAGE else "GET, POST, DELETE",
            "Access-Control-Allow-Headers": _REQUEST_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        }
        return Response(status_code=204, headers=told)


def sending_with(send: Send, headers: Mapping[str, str]) -> Send:
    """Return ``send`` with these headers added to each response."""
    if not headers:
        return send
    added = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]

    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return send_more


def _is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    return method == "OPTIONS" and "access-control-request-method" in headers
