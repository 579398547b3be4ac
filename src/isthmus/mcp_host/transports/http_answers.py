"""The check that the JSON body of an HTTP response answers its request.

Without this check, after an answer with another id, or a message that is not an answer, the request would wait until
the call's deadline. Event streams are not checked: the SDK assigns an answer in them to their request.
"""

import json
from collections.abc import AsyncIterator

import httpx2
from pydantic_core import from_json
from typing_extensions import override

from isthmus.mcp_host.transports.http_caps import RefusedBodyError
from isthmus.mcp_host.transports.session_refusals import json_rpc_message, request_id_in, with_mark
from isthmus.mcp_host.transports.wrapped_body import WrappedBody

SHOWN_CHARACTERS = 200
"""Maximum number of characters of a body that an error quotes."""


class AnswerStream(WrappedBody):
    """The body of the answer to the request `request_id`, passed on when it is complete.

    Raises RefusedBodyError if it is not the answer to this request.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, request_id: str | int) -> None:
        super().__init__(inner)
        self._request_id = request_id

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield check_body(b"".join([part async for part in self._inner]), self._request_id)


def check_answer(response: httpx2.Response) -> None:
    """Make a response check its body when it is read, if it is JSON and responds to a JSON-RPC request."""
    kind = response.headers.get("content-type", "").lower()
    if response.request.method != "POST" or response.status_code >= 400 or not kind.startswith("application/json"):
        return
    request_id = request_id_in(response.request.content)
    if request_id is not None and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = AnswerStream(response.stream, request_id)


def check_body(body: bytes, request_id: str | int) -> bytes:
    """Return the body to pass on. An error without an id gets the id of this request; it may refuse the session.

    A body that is not JSON is passed on unchanged: its reader reports the problem.

    Raises:
        RefusedBodyError: it is not a JSON-RPC answer, or the answer to another request; the message describes it.
    """
    try:
        value: object = from_json(body)
    except ValueError:
        return body
    message = json_rpc_message(value)
    if message is None or "method" in message:
        received = repr(message["method"]) if message is not None else json.dumps(value, ensure_ascii=False)
        raise RefusedBodyError(f"expected a JSON-RPC answer, received {received[:SHOWN_CHARACTERS]}")
    found = message.get("id")
    if found is None and "error" in message:
        return json.dumps({**message, "id": request_id, "error": with_mark(message["error"])}).encode()
    if str(found) != str(request_id):
        named = json.dumps(found, ensure_ascii=False)[:SHOWN_CHARACTERS]
        raise RefusedBodyError(f"expected the answer to the request {request_id}, received one to {named}")
    return body
