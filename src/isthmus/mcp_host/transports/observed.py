"""Wrapper of a transport's two streams that passes each message to an observer, which may change it.

It starts no tasks and queues nothing.
"""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, cast

from anyio.abc import AsyncResource
from mcp.shared.message import SessionMessage
from typing_extensions import override

Item: TypeAlias = SessionMessage | Exception


class StreamObserver(Protocol):
    """Observer of the messages of one connection."""

    def sending(self, item: SessionMessage) -> None:
        """Handle a message before it is sent."""
        ...

    def sent(self, item: SessionMessage) -> None:
        """Handle a message after it was sent, or could not be sent."""
        ...

    async def received(self, item: Item) -> Item | None:
        """Return a received message, changed or unchanged; None to drop it."""
        ...

    def ended(self) -> None:
        """Handle the end of the server's messages."""
        ...


class _Stream(AsyncResource):
    """One direction of a transport. The SDK has no common type for these streams."""

    def __init__(self, inner: Any, observer: StreamObserver) -> None:
        self._inner = inner
        self._observer = observer

    @property
    def last_context(self) -> Any:
        """The context that the SDK's own transports attach to a received message; None for other transports."""
        return getattr(self._inner, "last_context", None)

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


class _Reading(_Stream):
    async def receive(self) -> Item:
        while (item := await self._observer.received(cast("Item", await self._inner.receive()))) is None:
            pass
        return item

    def __aiter__(self) -> "_Reading":
        return self

    async def __anext__(self) -> Item:
        try:
            while (item := await self._observer.received(cast("Item", await self._inner.__anext__()))) is None:
                pass
            return item
        except StopAsyncIteration:
            self._observer.ended()
            raise


class _Writing(_Stream):
    async def send(self, item: SessionMessage, /) -> None:
        self._observer.sending(item)
        try:
            await self._inner.send(item)
        finally:
            self._observer.sent(item)


@contextlib.asynccontextmanager
async def observed(
    inner: AbstractAsyncContextManager[Any], observer: StreamObserver
) -> AsyncGenerator[tuple[_Reading, _Writing]]:
    """Open the transport `inner`, and yield its streams, observed by `observer`."""
    async with inner as (reading, writing):
        yield _Reading(reading, observer), _Writing(writing, observer)
