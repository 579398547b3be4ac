"""OpenAI's client, which makes only the first request to a path from its parts: later ones differ in their body.

They are also sent past the functions of the client that repeat requests and sign them in other ways, which takes a
third as long as sending them.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from openai import AsyncOpenAI, AsyncStream
from typing_extensions import override

from isthmus.record import record


@record
class _Pattern:
    """The parts of a request that the next one to the same path has, too."""

    method: str
    url: httpx2.URL
    headers: tuple[tuple[bytes, bytes], ...]
    extensions: Mapping[str, Any]

    def request(self, content: bytes) -> httpx2.Request:
        """Return a request with this body."""
        return httpx2.Request(
            self.method,
            self.url,
            headers=list(self.headers),
            content=content,
            extensions=dict(self.extensions),
        )


class RepeatingClient(AsyncOpenAI):
    """A client with one key and the same headers in each request."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._patterns: dict[str, _Pattern] = {}

    @asynccontextmanager
    async def streamed(self, path: str, content: bytes) -> AsyncGenerator[httpx2.Response]:
        """Send a JSON body to a path, and yield the response, whose content is not read; close it at the end.

        Raises:
            openai.APIStatusError: the response is an error.
            openai.APIConnectionError, httpx2.HTTPError: there is no response.
        """
        pattern = self._patterns.get(path)
        if pattern is None:
            first = await self.post(path, content=content, cast_to=object, stream=True, stream_cls=AsyncStream[object])
            async with first:
                yield first.response
            return
        response = await self._client.send(pattern.request(content), stream=True)
        try:
            if not response.is_success:
                await response.aread()
                raise self._make_status_error_from_response(response)
            yield response
        finally:
            await response.aclose()

    @override
    def _build_request(self, options: Any, *, retries_taken: int = 0) -> httpx2.Request:
        request = super()._build_request(options, retries_taken=retries_taken)
        if isinstance(options.content, bytes):
            headers = tuple((name, value) for name, value in request.headers.raw if name.lower() != b"content-length")
            self._patterns[options.url] = _Pattern(request.method, request.url, headers, dict(request.extensions))
        return request
