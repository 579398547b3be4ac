"""Requests over HTTP that a server refused because it does not know their session, as after its restart.

Servers do this in many forms. What is known of a refusal goes with the error of its request, as a mark in its data,
since several requests may be answered at once. Not here: repeating a request, see
:mod:`isthmus.mcp_host.connection.connection`.
"""

import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Any, cast

import anyio
import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData
from pydantic_core import from_json
from typing_extensions import override

from isthmus.mcp_host.transports.wrapped_body import WrappedBody

SESSION_HEADER = "mcp-session-id"
REFUSED = "Server returned an error response"
"""The SDK's message for an HTTP status that it does not handle."""
STATUSES = (400, 404, 410)
"""HTTP statuses with which servers refuse a session."""
LONGEST_TEXT = 200
"""Maximum number of characters of a body that an error quotes."""
_ABOUT_SESSION = re.compile(r"\bsession|not (?:been )?initiali[sz]ed|uninitiali[sz]ed", re.IGNORECASE)
_MARK = f"isthmus-{secrets.token_hex(8)}"
"""Key of the mark; a server cannot know it."""


class SessionRefusal(Enum):
    """Certainty that a request was refused before it had an effect, because of its session."""

    CERTAIN = "certain"
    """The server does not know the session."""
    POSSIBLE = "possible"
    """The server refused the session or the request itself, which may have had an effect."""
    UNSENT = "unsent"
    """The request did not leave this process: the server could not be reached, or the connection had just ended."""


def mark(refusal: SessionRefusal) -> Mapping[str, str]:
    """Return the data of an error that carries this to the caller of the request."""
    return {_MARK: refusal.value}


def refusal_of(error: MCPError) -> SessionRefusal | None:
    """Return what is known of the session from the error of a request; None if it is not about the session."""
    data: object = error.error.data
    value = cast("dict[str, object]", data).get(_MARK) if isinstance(data, dict) else None
    if value is not None:
        return SessionRefusal(value)
    if isinstance(error.__context__, anyio.BrokenResourceError | anyio.ClosedResourceError):
        return SessionRefusal.UNSENT  # the SDK found nobody who would take the request to the server
    return SessionRefusal.POSSIBLE if is_about_session(error.message) else None


def is_about_session(text: str) -> bool:
    """Return whether an error message speaks of a session or of its beginning."""
    return _ABOUT_SESSION.search(text) is not None


def with_mark(error: object) -> object:
    """Return the error of an answer without an id, marked if it is about the session."""
    values: Mapping[str, object] = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    is_marked = is_about_session(str(values.get("message")))
    return {**values, "data": mark(SessionRefusal.CERTAIN)} if is_marked else cast("object", error)


def error_of(status: int, body: bytes, request_id: str | int) -> ErrorData:
    """Return the error of a request with a session that was answered by one of `STATUSES` and this body.

    An error with the id of the request is the server's answer, unless it is about the session. Any other 404 or 410
    refuses the session; a 400 does if it says so.
    """
    message = _message_in(body)
    found = _error_in(message)
    said = _text(body) if found is None else found.message
    is_certain = is_about_session(said)
    if found is not None and not is_certain and str(message.get("id")) == str(request_id):
        return found
    data = mark(SessionRefusal.CERTAIN if is_certain or status != 400 else SessionRefusal.POSSIBLE)
    if found is not None:
        return ErrorData(code=found.code, message=found.message, data=data)
    return ErrorData(code=INTERNAL_ERROR, message=f"{REFUSED}: HTTP {status}{said and f': {said}'}", data=data)


class _ErrorBody(WrappedBody):
    """The body of a refusal, replaced by the error of its request when it is complete."""

    def __init__(self, inner: httpx2.AsyncByteStream, status: int, request_id: str | int) -> None:
        super().__init__(inner)
        self._status = status
        self._request_id = request_id

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = b"".join([part async for part in self._inner])
        yield _error_body(self._request_id, error_of(self._status, body, self._request_id))


def explain_refusal(response: httpx2.Response) -> None:
    """Let a response that may refuse its session say so as the error of its request, when it is read."""
    request = response.request
    if response.status_code not in STATUSES or SESSION_HEADER not in request.headers or request.method != "POST":
        return
    request_id = request_id_in(request.content)
    if request_id is not None and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _ErrorBody(response.stream, response.status_code, request_id)
        response.headers["content-type"] = "application/json"
        del response.headers["content-length"]


def unsent_answer(request: httpx2.Request, problem: str) -> httpx2.Response | None:
    """Return an answer to a request of a session that could not be sent; None for any other request."""
    request_id = request_id_in(request.content) if request.method == "POST" else None
    if request_id is None or SESSION_HEADER not in request.headers:
        return None
    content = _error_body(request_id, unsent_error(problem))
    return httpx2.Response(503, headers={"content-type": "application/json"}, content=content, request=request)


def unsent_error(problem: str) -> ErrorData:
    """Return the error of a request that could not be sent."""
    return ErrorData(code=CONNECTION_CLOSED, message=problem, data=mark(SessionRefusal.UNSENT))


def _error_body(request_id: str | int, error: ErrorData) -> bytes:
    said = error.model_dump(by_alias=True, mode="json", exclude_none=True)
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": said}).encode()


def request_id_in(body: bytes) -> str | int | None:
    """Return the id of a JSON-RPC request; None for any other body."""
    message = _message_in(body)
    found = message.get("id") if "method" in message else None
    return found if isinstance(found, str | int) else None


def json_rpc_message(value: object) -> Mapping[str, object] | None:
    """Return a JSON-RPC message; None for any other value."""
    if not isinstance(value, dict):
        return None
    message = cast("Mapping[str, object]", value)
    return message if message.get("jsonrpc") == "2.0" else None


def _message_in(body: bytes) -> Mapping[str, object]:
    """Return the JSON-RPC message in a body; empty for any other body."""
    try:
        return json_rpc_message(from_json(body)) or {}
    except ValueError:
        return {}


def _error_in(message: Mapping[str, object]) -> ErrorData | None:
    error = message.get("error")
    values = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    code, text = values.get("code"), values.get("message")
    if not isinstance(code, int) or not isinstance(text, str):
        return None
    return ErrorData(code=code, message=text, data=values.get("data"))


def _text(body: bytes) -> str:
    """Return the beginning of a body that is text or JSON; empty for a page."""
    text = " ".join(body[: 4 * LONGEST_TEXT].decode("utf-8", "replace").split())
    return "" if text.startswith("<") else text[:LONGEST_TEXT]
