"""Gathers the writes of one turn of the event loop to a connection into one system call.

uvicorn writes the head of an answer, every event and the last chunk by themselves; a small answer is then six packets.
Nothing waits longer than the turn that wrote it.
"""

import asyncio
from typing import Any, cast

from typing_extensions import override
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from isthmus.listeners.http_protocol import HttpProtocol

GATHERED_BYTES = 65536
"""Number of gathered bytes that is written at once, so that the connection can push back on a fast writer."""


class GatheringTransport(asyncio.Transport):
    """A transport in front of another one."""

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
    """uvicorn's HTTP protocol, the one that it would choose itself, on a :class:`GatheringTransport`."""

    _gathering: GatheringTransport

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._gathering = GatheringTransport(cast("asyncio.Transport", transport))
        super().connection_made(self._gathering)

    def on_response_complete(self) -> None:
        """Write the answer at once: it is whole, so nothing is gained by waiting."""
        self._gathering.flush()
        cast("Any", super()).on_response_complete()
