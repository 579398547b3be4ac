"""The port Framing, which puts answers into HTTP, and the framing of JSON-RPC.

The framing of REST is in :mod:`isthmus.a2a.server.rest`.
"""

from collections.abc import Mapping
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from isthmus.a2a.protocol.errors import retry_headers
from isthmus.a2a.protocol.jsonrpc import CONTENT_TYPE_NOT_SUPPORTED
from isthmus.encoding.event_stream import event_frame
from isthmus.encoding.json_text import encode
from isthmus.rpc.messages import RequestId, RpcError, error_response, response

PIECE_BYTES = 64 * 1024
"""Maximum number of bytes of a response that are sent at once."""


class Framing(Protocol):
    """A way to put the answer to one request into HTTP."""

    def item(self, item: object, seq: int | None = None) -> bytes:
        """Return the frame of a stream item; ``seq`` becomes its id."""
        ...

    def error_item(self, error: RpcError) -> bytes:
        """Return the frame that ends a failed stream."""
        ...

    def result(self, result: object, headers: Mapping[str, str]) -> Response:
        """Return the response with a result."""
        ...

    def failure(self, error: RpcError, headers: Mapping[str, str]) -> Response:
        """Return the response to a failed request."""
        ...


class JsonRpcFraming(Framing):
    """JSON-RPC 2.0. ``only_streams``: the client accepts an event stream and nothing else.

    A failure has the HTTP status 200, but 503 for what is not available at the moment, so that proxies see it.
    """

    def __init__(self, request_id: RequestId | None, *, only_streams: bool = False) -> None:
        self._id = request_id
        self._only_streams = only_streams

    @override
    def item(self, item: object, seq: int | None = None) -> bytes:
        return event_frame(encode(response(self._id, item)), seq)

    @override
    def error_item(self, error: RpcError) -> bytes:
        return event_frame(self._encode_error(error))

    @override
    def result(self, result: object, headers: Mapping[str, str]) -> Response:
        return json_response(encode(response(self._id, result)), headers=headers)

    @override
    def failure(self, error: RpcError, headers: Mapping[str, str]) -> Response:
        later = retry_headers(error)
        status, headers = 503 if later else 200, {**headers, **later}
        if self._only_streams:
            # Some clients that accept only an event stream cannot read anything else (a2a-sdk, @a2a-js/sdk).
            return Response(self.error_item(error), status, headers, "text/event-stream")
        return json_response(self._encode_error(error), status, headers)

    def _encode_error(self, error: RpcError) -> bytes:
        return encode(error_response(self._id, error.code, str(error), error.data))


class PiecewiseResponse(Response):
    """A response whose body is sent at the reader's pace, piece by piece: a large one as a whole would be copied."""

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self.body
        if len(body) <= PIECE_BYTES:
            await super().__call__(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(body), PIECE_BYTES):
            is_last = start + PIECE_BYTES >= len(body)
            piece = bytes(body[start : start + PIECE_BYTES])
            await send({"type": "http.response.body", "body": piece, "more_body": not is_last})


def check_content_type(stated: str | None) -> None:
    """Check that the content type of a body is JSON; a missing one counts as JSON.

    Raises:
        RpcError: it is another type.
    """
    kind = (stated or "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        message = f"the content type {kind[:80]!r} is not supported: send the request as application/json"
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, message)


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an HTTP response with JSON."""
    return PiecewiseResponse(body, status, headers, "application/json")
