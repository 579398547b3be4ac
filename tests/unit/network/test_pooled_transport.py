"""Tests of the transport that looks quickly whether the server has closed its idle connections."""

import asyncio
import select
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest

from isthmus.network.pooled_transport import pooled_transport

pytestmark = pytest.mark.anyio
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Site:
    """A server whose answers can wait for each other, and a client of it."""

    client: httpx2.AsyncClient
    url: str = ""
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])
    awaited: int = 1
    """Number of requests that are answered together."""
    _waiting: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while await reader.readline():
            while await reader.readline() != b"\r\n":
                pass
            self._waiting.append(writer)
            if len(self._waiting) == self.awaited:
                for each in self._waiting:
                    each.write(ANSWER)
                self._waiting.clear()
        writer.close()

    async def get(self, count: int = 1) -> None:
        """Make requests at the same time, each over a connection of its own."""
        self.awaited = count
        answers = await asyncio.gather(*(self.client.get(self.url) for _ in range(count)))
        assert [answer.text for answer in answers] == ["ok"] * count

    async def close(self, *numbers: int) -> None:
        """Close connections on the server's side."""
        for number in numbers:
            self.writers[number].close()
            await self.writers[number].wait_closed()


@asynccontextmanager
async def opened() -> AsyncGenerator[Site]:
    transport = pooled_transport(ssl.create_default_context(), httpx2.Limits(max_keepalive_connections=20))
    async with asyncio.timeout(30), httpx2.AsyncClient(transport=transport) as client:
        site = Site(client)
        async with await asyncio.start_server(site.serve, "127.0.0.1", 0) as server:
            site.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            yield site
            await client.aclose()


async def test_a_connection_that_the_server_has_closed_is_not_used() -> None:
    assert "_pool" in vars(httpx2.AsyncHTTPTransport())  # which is replaced, although it is not public
    async with opened() as site:
        await site.get()
        await site.get()
        assert len(site.writers) == 1
        await site.close(0)
        await site.get()
        assert len(site.writers) == 2


async def test_of_many_idle_connections_those_that_are_open_are_used_again() -> None:
    async with opened() as site:
        await site.get(5)
        await site.close(0, 2, 4)
        await site.get(2)
        assert len(site.writers) == 5
        await site.get(3)
        assert len(site.writers) == 6


async def test_a_request_asks_once_about_all_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    poll = select.poll

    def counted() -> object:
        looks.append(None)
        return poll()

    async with opened() as site:
        await site.get(5)
        monkeypatch.setattr(select, "poll", counted)
        await site.get()
        assert len(looks) == 1
        await site.close(*range(5))
        await site.get()
        assert len(looks) == 2
