"""A TCP proxy whose connections the test cuts, as a network does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """Forwards bytes to a port on this machine."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.cut_after: int | None = None
        """Cut each connection after this number of bytes from the server."""
        self.cuts: list[int] = []
        """Cut the next connections, one after the other, after these numbers of bytes instead."""
        self.lost_replies: list[bytes] = []
        """Cut a connection where the reply to a request containing these bytes begins, once for each."""
        self.url = ""

    def cut(self) -> None:
        """Close every connection now."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side has ended it."""
        self.connections += 1
        self._writers.add(writer)
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(upstream_writer)
        limit = self.cuts.pop(0) if self.cuts else self.cut_after
        is_lost = asyncio.Event()
        there = asyncio.create_task(self._requests(reader, upstream_writer, is_lost))
        back = asyncio.create_task(self._replies(upstream_reader, writer, limit, is_lost))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for item in (there, back):
            item.cancel()
        await asyncio.wait({there, back})
        for item in (writer, upstream_writer):
            self._writers.discard(item)
            item.transport.abort()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_lost: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                for mark in [mark for mark in self.lost_replies if mark in data][:1]:
                    self.lost_replies.remove(mark)
                    is_lost.set()
                writer.write(data)
                await writer.drain()

    async def _replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None, is_lost: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while (data := await reader.read(65536)) and not is_lost.is_set():
                if limit is not None:
                    data, limit = data[:limit], limit - len(data)
                writer.write(data)
                await writer.drain()
                if limit is not None and limit <= 0:
                    return


@asynccontextmanager
async def cutting_proxy(url: str) -> AsyncGenerator[CuttingProxy]:
    """Run a proxy in front of the server at a URL of this machine."""
    proxy = CuttingProxy(int(url.rstrip("/").rsplit(":", 1)[1]))
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield proxy
    finally:
        proxy.cut()
        server.close()
        await server.wait_closed()
