"""uvicorn for the companion: a socket that is bound already, streams that end properly, signals left alone.

A stream that ends with its last chunk lets real clients come back by themselves after a restart; one that breaks off
does not. uvicorn waits for open responses before anything else could end them, hence :class:`Server`.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn

from isthmus.ide.http_transport import McpEndpoint

MAXIMUM_CONNECTIONS = 256


class Server(uvicorn.Server):
    """Serves an endpoint on a bound socket until ``should_exit`` is set; ``listening`` is set once it listens."""

    def __init__(self, endpoint: McpEndpoint, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                endpoint,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=MAXIMUM_CONNECTIONS,
                timeout_graceful_shutdown=2,
            )
        )
        self._endpoint = endpoint
        self._listener = listener
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: whoever runs the server decides what a signal means."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then say so."""
        await super().startup(sockets)
        self.listening.set()

    async def run_until_stopped(self) -> None:
        """Serve until ``should_exit`` is set; returns when every connection is closed."""
        await self.serve([self._listener])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then what uvicorn does."""
        self._endpoint.close()
        await super().shutdown(sockets)
