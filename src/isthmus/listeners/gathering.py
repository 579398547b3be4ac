"""Combines all writes to a connection in one turn of the event loop into one system call.

uvicorn writes the head of an answer, every event and the last chunk separately, so a small answer would be six packets.
No write waits longer than the turn that made it.
"""

import asyncio
from typing import Any, cast

from typing_extensions import override
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from isthmus.listeners.http_1_0 import without_chunks
from isthmus.listeners.http_protocol import HttpProtocol

GATHERED_BYTES = 65536
"""Number of gathered bytes above which they are written at once, so that the connection can slow a fast writer."""


class GatheringTransport(asyncio.Transport):
    """A transport that gathers writes and passes them to the transport ``inner``."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes | bytearray | memoryview[Any]] = []
        self._size = 0

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        """Write together with all other writes of this turn of the loop."""
        if not data:
            return
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= GATHERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write everything gathered so far."""
        if self._pieces:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            if not self._inner.is_closing():
                self._inner.write(data)

    def close(self) -> None:
        """Write everything gathered so far, then close."""
        self.flush()
        self._inner.close()

    def abort(self) -> None:
        """Close at once."""
        self._inner.abort()

    def is_closing(self) -> bool:
        """Return whether it is closed or about to be."""
        return self._inner.is_closing()

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    @override
    def pause_reading(self) -> None:
        self._inner.pause_reading()

    @override
    def resume_reading(self) -> None:
        self._inner.resume_reading()

    @override
    def is_reading(self) -> bool:
        return self._inner.is_reading()

    @override
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)

    @override
    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._inner.get_protocol()


class GatheringProtocol(HttpProtocol, AutoHTTPProtocol):
    """The HTTP protocol that uvicorn would choose, on a :class:`GatheringTransport`."""

    _gathering: GatheringTransport

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._gathering = GatheringTransport(cast("asyncio.Transport", transport))
        super().connection_made(self._gathering)

    def on_headers_complete(self) -> None:
        """Begin a request; an answer to a client of HTTP/1.0 gets no chunks."""
        cast("Any", super()).on_headers_complete()  # httptools calls it, h11 has no such method and no such fault
        cycle: Any = getattr(self, "cycle", None)
        if cycle is not None and cycle.scope["http_version"] == "1.0":
            cycle.send = without_chunks(cycle)

    def on_response_complete(self) -> None:
        """Write the complete answer at once; waiting would gain nothing."""
        self._gathering.flush()
        cast("Any", super()).on_response_complete()
