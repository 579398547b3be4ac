"""Reads the server-sent events of OpenAI's APIs from a response of the SDK, as JSON.

The SDK's own iterator passes each event through a dozen functions, which costs half as much as the request itself.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from isthmus.encoding.json_shapes import as_object, as_text
from isthmus.encoding.json_text import decode_loosely

if TYPE_CHECKING:
    import httpx2

END = b"[DONE]"
"""Data of the event after which OpenAI's servers send no more."""
END_MARK: Final = object()
"""Event that stands for END; every other event is JSON."""
END_SECONDS = 0.1
"""Maximum time in seconds to wait for the end of the response after that event."""


class EventSplitter:
    """Incremental splitter of a byte stream into the data of its events. An event that is not complete is left out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._lines: list[bytes] = []
        """Data lines of the event that is being received."""
        self._after_return = False
        """Whether a newline at the next beginning belongs to the line end before it."""

    def feed(self, received: bytes) -> Iterator[bytes]:
        """Yield the data of the events that end in ``received``."""
        if self._after_return and received:
            received = received.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in received:
            self._after_return = received.endswith(b"\r")
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = received.split(b"\n")
        for line in ended:
            if self._parts:
                line = b"".join((*self._parts, line))
                self._parts.clear()
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._lines.append(value.removeprefix(b" "))
            elif self._lines:
                yield b"\n".join(self._lines)
                self._lines.clear()
        if rest:
            self._parts.append(rest)


async def read_events(response: "httpx2.Response") -> AsyncIterator[object]:
    """Yield the events of a response as JSON, up to the end of the response or the END event, as END_MARK.

    Raises:
        openai.APIError: an event has an error, as the SDK's own iterator says it.
        ValueError: an event is not JSON.
        httpx2.HTTPError: the connection broke off.
    """
    splitter = EventSplitter()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            for data in splitter.feed(piece):
                if data.startswith(END):
                    yield END_MARK
                    # A connection whose response was read to its end is used again.
                    if response.http_version == "HTTP/1.1":
                        await _read_rest(pieces)
                    return
                event: object = decode_loosely(data.decode())
                if error := as_object(event).get("error"):
                    raise _api_error(error, response)
                yield event


def _api_error(error: object, response: "httpx2.Response") -> Exception:
    from openai import APIError

    message = as_text(as_object(error).get("message")) or "An error occurred during streaming"
    return APIError(message, request=response.request, body=error)


async def _read_rest(pieces: AsyncIterator[bytes]) -> None:
    """Read what is left of a response, if it comes at once; an error of a complete answer has no effect."""
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(END_SECONDS):
            async for _ in pieces:
                pass
