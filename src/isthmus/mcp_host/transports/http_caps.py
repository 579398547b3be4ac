"""Limits for a server's HTTP responses: bytes of whole bodies, and JSON values of bodies and events.

Bytes that are not UTF-8 are replaced. The rate at which a server can make the client reopen its stream is limited too.

Compression is not requested, and a compressed response is refused: its size is unknown before it is decompressed.
The size of each event of a stream is limited by the SDK (``max_sse_event_size``).
"""

import asyncio
import codecs
import math
import re
import time
from collections.abc import AsyncIterator

import httpx2
from typing_extensions import override

from isthmus.mcp_host.transports.wrapped_body import WrappedBody
from isthmus.record import record

NO_COMPRESSION = {"Accept-Encoding": "identity"}


_EVENT_END = re.compile(rb"\n\n|\r\n\r\n|\r\r")
FREE_STREAMS = 10
STREAM_SECONDS = 0.5
"""Minimum time in seconds between two streams, after the first `FREE_STREAMS`."""


@record
class Bounds:
    """Limits of one response: its bytes, and the JSON objects and lists in its body or in one event."""

    bytes: int
    values: int


class RefusedBodyError(httpx2.StreamError):
    """A response body was refused; the SDK reports this as the error of its request."""


class CappedStream(WrappedBody):
    """A body that raises RefusedBodyError beyond its limits, or at once for the reason ``refused``.

    ``is_events``: it is an endless stream of events; only the values of each event are limited.
    """

    def __init__(
        self, inner: httpx2.AsyncByteStream, bounds: Bounds, *, refused: str | None = None, is_events: bool = False
    ) -> None:
        super().__init__(inner)
        self._bounds = bounds
        self._refused = refused
        self._is_events = is_events

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = values = 0
        last = b""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if self._refused is not None:
            raise RefusedBodyError(self._refused)
        async for part in self._inner:
            size += len(part)
            if size > self._bounds.bytes and not self._is_events:
                raise RefusedBodyError(f"its answer has more than the {self._bounds.bytes} bytes that are accepted")
            values += _values(part)
            if values > self._bounds.values:
                reason = f"its answer has more than {self._bounds.values:,} objects and lists"
                # After any other failure of a stream, the SDK leaves its waiting callers without an answer.
                raise httpx2.SSEError(reason) if self._is_events else RefusedBodyError(reason)
            if self._is_events:
                *before, rest = _EVENT_END.split(last + part)
                values = _values(rest) if before else values
                last = part[-1:]
            yield decoder.decode(part).encode()
        if rest := decoder.decode(b"", final=True):
            yield rest.encode()


def _values(part: bytes) -> int:
    return part.count(b"{") + part.count(b"[")


def cap(response: httpx2.Response, bounds: Bounds) -> None:
    """Limit the body of a response that is not read yet."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    refused = None
    if coding not in ("", "identity"):
        refused = f"its answer is compressed ({coding[:20]}), but compression was not requested"
    is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = CappedStream(response.stream, bounds, refused=refused, is_events=is_events)


class ReopeningPace:
    """Delay for a client that keeps opening streams because its server ends each of them at once."""

    def __init__(self) -> None:
        self._free_at = -math.inf

    async def wait(self) -> None:
        """Wait until another stream may be opened; the first `FREE_STREAMS` are not delayed."""
        now = time.monotonic()
        self._free_at = max(self._free_at, now - FREE_STREAMS * STREAM_SECONDS) + STREAM_SECONDS
        await asyncio.sleep(max(0.0, self._free_at - now))
