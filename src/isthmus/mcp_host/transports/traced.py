"""Wraps the streams of a transport, and writes down what goes through them. No tasks of its own, nothing queued."""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeAlias, cast

from mcp.shared.message import SessionMessage

from isthmus.mcp_host.config.server_config import Endpoint, HttpKind, StdioEndpoint
from isthmus.mcp_host.diagnosis.trace import Trace, TraceKind
from isthmus.mcp_host.transports.wrapped import WrappedStream

Item: TypeAlias = SessionMessage | Exception


def what_opens(endpoint: Endpoint, kind: HttpKind) -> str:
    """Return the target of a connection, for the trace."""
    if isinstance(endpoint, StdioEndpoint):
        return "start the program"
    return "open an event stream (SSE)" if kind is HttpKind.SSE else "speak streamable HTTP"


class _Traced(WrappedStream):
    def __init__(self, inner: Any, trace: Trace) -> None:
        super().__init__(inner)
        self._trace = trace

    def _note(self, kind: TraceKind, item: Item) -> None:
        if isinstance(item, Exception):
            self._trace.happened(TraceKind.BROKEN, f"{type(item).__name__}: {item}")
            return
        dumped = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._trace.message(kind, dumped, len(text.encode("utf-8", "replace")))


class _Reading(_Traced):
    async def receive(self) -> Item:
        item = cast("Item", await self._inner.receive())
        self._note(TraceKind.RECEIVED, item)
        return item

    def __aiter__(self) -> "_Reading":
        return self

    async def __anext__(self) -> Item:
        try:
            item = cast("Item", await self._inner.__anext__())
        except StopAsyncIteration:
            self._trace.happened(TraceKind.CLOSED)
            raise
        self._note(TraceKind.RECEIVED, item)
        return item


class _Writing(_Traced):
    async def send(self, item: SessionMessage, /) -> None:
        self._note(TraceKind.SENT, item)
        await self._inner.send(item)


class TracedTransport:
    """A transport around another one; `what` says what is opened."""

    def __init__(self, inner: AbstractAsyncContextManager[Any], trace: Trace, what: str) -> None:
        self._inner = inner
        self._trace = trace
        self._what = what

    async def __aenter__(self) -> tuple[_Reading, _Writing]:
        self._trace.happened(TraceKind.OPENING, self._what)
        reading, writing = await self._inner.__aenter__()
        self._trace.happened(TraceKind.OPEN)
        return _Reading(reading, self._trace), _Writing(writing, self._trace)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)
