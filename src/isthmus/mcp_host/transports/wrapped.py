"""Base of wrappers around the streams of a transport: they are entered, left and closed with the stream inside."""

from types import TracebackType
from typing import Any


class WrappedStream:
    """Around one direction of a transport, whose streams have no common type in the SDK."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        """The context that the SDK's own transports send along when they are read; None of others."""
        return getattr(self._inner, "last_context", None)

    async def aclose(self) -> None:
        """Close the stream inside."""
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
