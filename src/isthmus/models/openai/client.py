"""OpenAI's client, which makes only the first request to a path from its parts: later ones differ in their body."""

from collections.abc import Mapping
from typing import Any

import httpx2
from openai import AsyncOpenAI
from typing_extensions import override

from isthmus.record import record


@record
class _Pattern:
    """The parts of a request that the next one to the same path has, too."""

    method: str
    url: httpx2.URL
    headers: tuple[tuple[bytes, bytes], ...]
    extensions: Mapping[str, Any]


class RepeatingClient(AsyncOpenAI):
    """A client with one key and the same headers in each request. Requests with ``content`` have no other options."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._patterns: dict[str, _Pattern] = {}

    @override
    def _build_request(self, options: Any, *, retries_taken: int = 0) -> httpx2.Request:
        if not isinstance(options.content, bytes):
            return super()._build_request(options, retries_taken=retries_taken)
        pattern = self._patterns.get(options.url)
        if pattern is None:
            request = super()._build_request(options, retries_taken=retries_taken)
            headers = tuple((name, value) for name, value in request.headers.raw if name.lower() != b"content-length")
            extensions = dict(request.extensions)
            self._patterns[options.url] = _Pattern(request.method, request.url, headers, extensions)
            return request
        return httpx2.Request(
            pattern.method,
            pattern.url,
            headers=list(pattern.headers),
            content=options.content,
            extensions=dict(pattern.extensions),
        )
