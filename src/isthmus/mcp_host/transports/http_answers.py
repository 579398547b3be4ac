"""Checks that a JSON body answers the request that it came to.

Without that check an answer with another id, or a message that is not an answer, would keep its request waiting until
the call's deadline. Event streams are not checked: the SDK takes an answer in them for that of their request.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import cast

import httpx2
from pydantic_core import from_json

from isthmus.mcp_host.transports.http_caps import RefusedBodyError

SHOWN_CHARACTERS = 200
"""Maximum length of what is quoted of a body."""


class AnswerStream(httpx2.AsyncByteStream):
    """The body of the answer to the request `request_id`, passed on when it is complete.

    It ends in RefusedBodyError when it answers no request, or another one.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, request_id: str | int) -> None:
        self._inner = inner
        self._request_id = request_id

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield checked(b"".join([part async for part in self._inner]), self._request_id)

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


def check_answer(response: httpx2.Response) -> None:
    """Have the body of a response checked when it is read, if it is JSON and came to a JSON-RPC request."""
    kind = response.headers.get("content-type", "").lower()
    if response.request.method != "POST" or response.status_code >= 400 or not kind.startswith("application/json"):
        return
    request_id = _id_of(response.request.content)
    if request_id is not None and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = AnswerStream(response.stream, request_id)


def checked(body: bytes, request_id: str | int) -> bytes:
    """Return the body to pass on; an error that names no request gets the id of this one.

    A body that is not JSON is passed on, too: its reader reports it.

    Raises:
        RefusedBodyError: it is not a JSON-RPC answer, or that of another request; the text says what it is.
    """
    try:
        value: object = from_json(body)
    except ValueError:
        return body
    message = _message(value)
    if message is None or "method" in message:
        came = repr(message["method"]) if message is not None else json.dumps(value, ensure_ascii=False)
        raise RefusedBodyError(f"expected a JSON-RPC answer, received {came[:SHOWN_CHARACTERS]}")
    found = message.get("id")
    if found is None and "error" in message:
        return json.dumps({**message, "id": request_id}).encode()
    if str(found) != str(request_id):
        named = json.dumps(found, ensure_ascii=False)[:SHOWN_CHARACTERS]
        raise RefusedBodyError(f"expected the answer to the request {request_id}, received one to {named}")
    return body


def _id_of(body: bytes) -> str | int | None:
    """Return the id of a JSON-RPC request; None for any other body."""
    try:
        message = _message(from_json(body))
    except ValueError:
        return None
    found = message.get("id") if message is not None and "method" in message else None
    return found if isinstance(found, str | int) else None


def _message(value: object) -> Mapping[str, object] | None:
    """Return a JSON-RPC message; None for any other value."""
    if not isinstance(value, dict):
        return None
    message = cast("Mapping[str, object]", value)
    return message if message.get("jsonrpc") == "2.0" else None
