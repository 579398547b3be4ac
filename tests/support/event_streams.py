"""Server-sent events as the strictest parser in use reads them."""

from collections.abc import Sequence

import httpx
from httpx_sse import EventSource, ServerSentEvent


def strictly_parsed(stream: bytes) -> Sequence[ServerSentEvent]:
    """Return the events of a stream, to httpx-sse: an empty line after an id is one, whatever came between."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    return list(EventSource(response).iter_sse())
