"""A minimal JSON server over ``websockets``: reads a message and sends it back."""

import asyncio
import json

from websockets.asyncio.server import ServerConnection, serve

from bench.programs import probe


async def _echo(connection: ServerConnection) -> None:
    async for received in connection:
        await connection.send(json.dumps(json.loads(received)))


async def _serve() -> None:
    async with serve(_echo, "127.0.0.1", 0, compression=None, max_size=None) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        probe.start(f"ws://{host}:{port}/")
        await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_serve())
