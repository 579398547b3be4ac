"""Trace of the messages of a transport, for diagnosis."""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.shared.message import SessionMessage
from typing_extensions import override

from isthmus.mcp_host.config.server_config import Endpoint, HttpKind, StdioEndpoint
from isthmus.mcp_host.diagnosis.trace import Trace, TraceKind
from isthmus.mcp_host.transports.observed import Item, StreamObserver, observed


class TraceWriter(StreamObserver):
    """Observer that adds each message of a connection to its trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @override
    def sending(self, item: SessionMessage) -> None:
        self._add(TraceKind.SENT, item)

    @override
    def sent(self, item: SessionMessage) -> None:
        return

    @override
    async def received(self, item: Item) -> Item:
        if isinstance(item, Exception):
            self._trace.happened(TraceKind.BROKEN, f"{type(item).__name__}: {item}")
        else:
            self._add(TraceKind.RECEIVED, item)
        return item

    @override
    def ended(self) -> None:
        self._trace.happened(TraceKind.CLOSED)

    def _add(self, kind: TraceKind, item: SessionMessage) -> None:
        dumped = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._trace.message(kind, dumped, len(text.encode("utf-8", "replace")))


def describe_opening(endpoint: Endpoint, kind: HttpKind) -> str:
    """Return the name of the step that opens a connection to `endpoint`, for the trace."""
    if isinstance(endpoint, StdioEndpoint):
        return "start the program"
    return "open an event stream (SSE)" if kind is HttpKind.SSE else "speak streamable HTTP"


@contextlib.asynccontextmanager
async def traced(inner: AbstractAsyncContextManager[Any], trace: Trace, opening: str) -> AsyncGenerator[Any]:
    """Open the transport `inner`, and yield its traced streams; `opening` is the name of the step in the trace."""
    trace.happened(TraceKind.OPENING, opening)
    async with observed(inner, TraceWriter(trace)) as streams:
        trace.happened(TraceKind.OPEN)
        yield streams
