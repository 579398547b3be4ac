"""Standard input and output as the channel of a protocol: nothing else is read from it or printed to it."""

import asyncio
import os
import threading
from collections import deque
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
        self._unwritten: deque[memoryview] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._reads = True
        self._waits = True

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield what comes, until the input ends or :meth:`end` is called."""
        threading.Thread(target=self._read, name="standard input", daemon=True).start()
        try:
            while data := await self._chunks.get():
                yield data
        finally:
            self._reads = False
            self._drop()  # or the thread waits for room

    async def write(self, data: bytes) -> None:
        """Write all of ``data``, also if the caller is cancelled: half a message would spoil the next one.

        Raises:
            OSError: the output is closed, or :meth:`end` was called while nobody read it.
        """
        left = memoryview(data)
        if self._flushing is None:
            left = self._write_now(left)
            if not left:
                return
            self._flushing = asyncio.create_task(self._flush())
            self._flushing.add_done_callback(_retrieve)
        self._unwritten.append(left)
        await asyncio.shield(self._flushing)

    def end(self) -> None:
        """End the input, and give up output that nobody reads."""
        self._waits = False
        self._writable.set()
        self._drop()
        self._chunks.put_nowait(b"")

    def _drop(self) -> None:
        if self._chunks.full():
            self._chunks.get_nowait()

    async def _flush(self) -> None:
        """Write what :meth:`write` has left, in order."""
        try:
            while self._unwritten:
                left = self._unwritten.popleft()
                while left := self._write_now(left):
                    await self._until_writable()
        finally:
            self._unwritten.clear()
            self._flushing = None

    def _write_now(self, left: memoryview) -> memoryview:
        """Write as much as there is room for, and return the rest."""
        os.set_blocking(self._outgoing, False)
        try:
            while left:
                left = left[os.write(self._outgoing, left) :]
        except BlockingIOError:
            pass
        return left

    async def _until_writable(self) -> None:
        self._writable.clear()
        if self._waits:
            self._loop.add_writer(self._outgoing, self._writable.set)
            try:
                await self._writable.wait()
            finally:
                self._loop.remove_writer(self._outgoing)
        if not self._waits:
            raise BrokenPipeError("the output was not read until the end")

    def _read(self) -> None:
        data = b"more"
        while data:
            try:
                data = os.read(self._incoming, CHUNK_BYTES)
            except OSError:
                data = b""
            if not self._reads:
                return
            put = self._chunks.put(data)
            try:
                asyncio.run_coroutine_threadsafe(put, self._loop).result()
            except (RuntimeError, asyncio.CancelledError):
                put.close()
                return  # the loop has ended


def _retrieve(task: "asyncio.Task[None]") -> None:
    """Take the error of a task whose callers may all be cancelled, or asyncio logs it as never retrieved."""
    if not task.cancelled():
        task.exception()
