"""The body of an HTTP response around another one, which is closed with it."""

import httpx2
from typing_extensions import override


class WrappedBody(httpx2.AsyncByteStream):
    """Base class of bodies that change or check the bytes of ``inner``, which is not read yet."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()
