"""Whether a host accepts connections, asked of real sockets."""

import asyncio

import pytest

from isthmus.network.reachable import accepts_connections
from support.ports import free_port

pytestmark = pytest.mark.anyio


async def test_a_port_is_reachable_as_long_as_something_listens() -> None:
    ended = asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""
        writer.close()
        ended.set()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    assert await accepts_connections(url)
    async with asyncio.timeout(5):
        await ended.wait()
    server.close()
    await server.wait_closed()
    assert not await accepts_connections(url)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "127.0.0.1", "[::1]", "..", "a" * 70 + ".invalid"])
async def test_an_unknown_or_closed_host_is_not_reachable(host: str) -> None:
    assert not await accepts_connections(f"http://{host}:{free_port()}/")


@pytest.mark.parametrize("url", ["", "http://", "http://[::1", "unix:/tmp/socket", "http://host:port/"])
async def test_what_cannot_be_asked_counts_as_reachable(url: str) -> None:
    assert await accepts_connections(url)
