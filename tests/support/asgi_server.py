"""An ASGI application on a port of this machine, served by the event loop of the test.

A connection must not outlive the test: the garbage collector would report one that is left open in another test.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator
from typing import Any

import uvicorn

from isthmus.listeners.http_server import end_connections
from support.waiting import eventually_async

GRACE_SECONDS = 0.5
"""Seconds that responses under way get at the end; then they are cut off."""


class _Server(uvicorn.Server):
    def __init__(self, application: Any) -> None:
        # ws="none": uvicorn would otherwise import any WebSocket library it finds, with its deprecated modules.
        config = uvicorn.Config(application, log_config=None, log_level="critical", lifespan="off", ws="none")
        super().__init__(config)
        self._stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to the test runner."""
        yield

    def stop(self) -> None:
        self._stopping.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await end_connections(self, sockets or (), GRACE_SECONDS)


@contextlib.asynccontextmanager
async def asgi_server(application: Any, listener: socket.socket) -> AsyncGenerator[None]:
    """Serve on a listening socket, which is closed at the end."""
    # Accepted sockets inherit this: the body of a response would wait 40 ms for the client to acknowledge its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = _Server(application)
    running = asyncio.create_task(server.serve([listener]))
    try:
        await eventually_async(lambda: server.started or running.done(), what="the server listens")
        yield
    finally:
        server.stop()
        await asyncio.wait_for(running, 60)
        await asyncio.sleep(0)  # transports that were cut off are closed in the next turn of the loop
        listener.close()
