"""Standard input and output as the channel of a protocol: nothing else is read from it or printed to it."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator

CHUNK_BYTES = 65_536
"""Maximum number of bytes read at once."""


def take_standard_streams() -> tuple[int, int]:
    """Return file descriptors for standard input and output; from now on, what is printed goes to standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


class StandardStreams:
    """The channel, for asyncio. It can be of any kind: pipes, files or a terminal.

    A thread reads, since files and terminals have no events; it waits until what it read is taken.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._writing = asyncio.Lock()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield what comes, until the input ends or :meth:`end` is called."""
        threading.Thread(target=self._read, name="standard input", daemon=True).start()
        while data := await self._chunks.get():
            yield data

    async def write(self, data: bytes) -> None:
        """Write all of ``data``.

        Raises:
            OSError: the output is closed.
        """
        async with self._writing:
            left = memoryview(data)
            os.set_blocking(self._outgoing, False)
            while left:
                try:
                    left = left[os.write(self._outgoing, left) :]
                except BlockingIOError:
                    await self._until_writable()

    def end(self) -> None:
        """End the input."""
        if self._chunks.full():
            self._chunks.get_nowait()
        self._chunks.put_nowait(b"")

    async def _until_writable(self) -> None:
        writable = asyncio.Event()
        self._loop.add_writer(self._outgoing, writable.set)
        try:
            await writable.wait()
        finally:
            self._loop.remove_writer(self._outgoing)

    def _read(self) -> None:
        data = b"more"
        while data:
            try:
                data = os.read(self._incoming, CHUNK_BYTES)
            except OSError:
                data = b""
            try:
                asyncio.run_coroutine_threadsafe(self._chunks.put(data), self._loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the loop has ended
