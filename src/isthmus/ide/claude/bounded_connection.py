"""WebSocket with limits beyond the library's for messages and queues.

A connection is aborted if there are too many connections, or if the client does not read our messages.
"""

import asyncio
import logging
import struct
from typing import Any, Final

from websockets.asyncio.server import ServerConnection
from websockets.protocol import State

from isthmus.listeners.connection_slot import SlotProtocol

_FINAL_TEXT: Final = 0x81
_FRAME_OF_16_BITS: Final = struct.Struct("!BBH")
_FRAME_OF_64_BITS: Final = struct.Struct("!BBQ")

_log = logging.getLogger(__name__)


class BoundedConnection(SlotProtocol, ServerConnection):
    """One connection of a server; it is in ``living`` while it is open.

    It is aborted if the client leaves more than ``maximum_unread`` bytes unread.
    """

    def __init__(self, living: "set[BoundedConnection]", maximum_unread: int, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._living = living
        self._maximum_unread = maximum_unread

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Add the new connection to ``living``."""
        super().connection_made(transport)
        self._living.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from ``living``."""
        self._living.discard(self)
        super().connection_lost(exc)

    def cut_off_unproven(self) -> None:
        """Abort the connection before its handshake is complete, because a closing server would wait for that."""
        if self.protocol.state is State.CONNECTING:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle frames, and check the limit, because pings are answered without flow control."""
        super().data_received(data)
        self.limit_unread()

    async def send_text(self, data: bytes) -> None:
        """Send a message in one text frame; wait only while the client does not read.

        Raises:
            ConnectionClosed: the connection was closed while waiting. On a closed connection, the message is dropped.
        """
        if self.transport.get_write_buffer_size() == 0:  # without flow control, in a fraction of the time
            if self.protocol.state is State.OPEN:
                self.transport.write(text_frame(data))
        else:
            self.limit_unread()
            await self.send(data, text=True)

    def limit_unread(self) -> None:
        """Abort the connection if the client leaves too many bytes unread."""
        if self.transport.get_write_buffer_size() > self._maximum_unread:
            _log.warning("an agent that does not read was cut off: %d MiB were waiting", self._maximum_unread >> 20)
            self.transport.abort()


def text_frame(data: bytes) -> bytes:
    """Return a message in one text frame of a server, without extensions, by :rfc:`6455`, section 5.2."""
    size = len(data)
    if size < 126:
        return bytes((_FINAL_TEXT, size)) + data
    if size < 1 << 16:
        return _FRAME_OF_16_BITS.pack(_FINAL_TEXT, 126, size) + data
    return _FRAME_OF_64_BITS.pack(_FINAL_TEXT, 127, size) + data
