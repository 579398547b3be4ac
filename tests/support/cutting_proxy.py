"""A TCP proxy whose connections the test cuts, and which refuses them for a time, as a network does."""

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
        self.closes_with_cut = False
        self.was_cut = False
        """Whether the network is away after the next cut, until :meth:`open`."""
        self._server: asyncio.Server | None = None
        self._own_port: int = 0

    async def open(self) -> None:
        """Accept connections, on the same port each time."""
        if self._server is None:
            self._server = await asyncio.start_server(self.accept, "127.0.0.1", self._own_port)
            self._own_port = self._server.sockets[0].getsockname()[1]
            self.url = f"http://127.0.0.1:{self._own_port}/"

    def close(self) -> None:
        """Take the network away: cut every connection, and refuse others."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.cut()

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
        if self.closes_with_cut and (is_lost.is_set() or (limit is not None and self.was_cut)):
            self.closes_with_cut = self.was_cut = False
            self.close()

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
                    self.was_cut = True
                    return


@asynccontextmanager
async def cutting_proxy(url: str) -> AsyncGenerator[CuttingProxy]:
    """Run a proxy in front of the server at a URL of this machine."""
    proxy = CuttingProxy(int(url.rstrip("/").rsplit(":", 1)[1]))
    await proxy.open()
    try:
        yield proxy
    finally:
        proxy.close()
        await asyncio.sleep(0)
