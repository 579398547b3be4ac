"""Bounds what a server's HTTP answers may weigh: bodies that are read whole, such as JSON, in bytes as they come.

Compression is not asked for, and an answer that comes compressed all the same is refused: how large it becomes cannot
be told before. Event streams are bounded event by event elsewhere (the SDK's ``max_sse_event_size``).
"""

from collections.abc import AsyncIterator

import httpx2

NO_COMPRESSION = {"Accept-Encoding": "identity"}


class RefusedBodyError(httpx2.StreamError):
    """A body that is not taken; the SDK makes it the error of the request that it answers."""


class CappedStream(httpx2.AsyncByteStream):
    """A body that ends in RefusedBodyError after ``maximum`` bytes, or at once where ``refused`` says why."""

    def __init__(self, inner: httpx2.AsyncByteStream, maximum: int, refused: str | None) -> None:
        self._inner = inner
        self._maximum = maximum
        self._refused = refused

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        if self._refused is not None:
            raise RefusedBodyError(self._refused)
        async for part in self._inner:
            size += len(part)
            if size > self._maximum:
                raise RefusedBodyError(f"its answer has more than the {self._maximum} bytes that are taken")
            yield part

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


def cap(response: httpx2.Response, maximum: int) -> None:
    """Bound the body of a response that is not read yet; of a stream of events only the coding is looked at."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    refused = None
    if coding not in ("", "identity"):
        refused = f"its answer is compressed ({coding[:20]}), which was not asked for"
    elif response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = CappedStream(response.stream, maximum, refused)
