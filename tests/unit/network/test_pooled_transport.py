"""Tests of the transport that looks quickly whether the server has closed its idle connections."""

import asyncio
import ssl

import httpx2
import pytest

from isthmus.network.pooled_transport import pooled_transport

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while await reader.readline():
            while await reader.readline() != b"\r\n":
                pass
            writer.write(ANSWER)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    transport = pooled_transport(ssl.create_default_context(), httpx2.Limits(max_keepalive_connections=20))
    assert "_pool" in vars(httpx2.AsyncHTTPTransport())  # which is replaced, although it is not public
    async with asyncio.timeout(30), server, httpx2.AsyncClient(transport=transport) as client:
        assert [(await client.get(url)).text for _ in range(2)] == ["ok", "ok"]
        assert len(writers) == 1
        writers[0].close()
        await writers[0].wait_closed()
        assert (await client.get(url)).text == "ok"
        assert len(writers) == 2
