"""A proxy for TCP connections: each goes whole to one of several servers, in turn, and past those that are away.

It reads nothing of what it passes on, so that streams flow as they are written. For one machine, in ``make cluster``:
it has no TLS, and notices that a server is gone only when a connection is refused.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable

CONNECT_SECONDS = 2.0
"""Maximum time for connecting to one server."""
_CHUNK = 65_536


class ConnectionProxy:
    """A proxy before the servers on `ports` of loopback, to which more may be added at any time."""

    def __init__(self, ports: Iterable[int] = ()) -> None:
        self.ports = list(ports)
        self._next = 0
        self._open = set[asyncio.Task[None]]()

    @contextlib.asynccontextmanager
    async def listening(self, port: int) -> AsyncGenerator[int]:
        """Pass connections on as long as the context lasts; yield the port, which 0 leaves to the system.

        Raises:
            OSError: the port is taken.
        """
        server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a connection with one to the next server that accepts it; without any, end it."""
        with contextlib.closing(writer):
            connection = await self._connect()
            if connection is None:
                return
            # One of the two that fails ends both: a server that was killed cuts the client's connection, too.
            with contextlib.closing(connection[1]):
                try:
                    async with asyncio.TaskGroup() as both:
                        both.create_task(_copy(reader, connection[1]))
                        both.create_task(_copy(connection[0], writer))
                except* OSError:
                    pass

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Return a connection to the next server; None if none of them accepts one."""
        for _ in self.ports:
            port = self.ports[self._next % len(self.ports)]
            self._next += 1
            with contextlib.suppress(OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection("127.0.0.1", port)
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on to their end, and then close this direction; the other one may go on."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
