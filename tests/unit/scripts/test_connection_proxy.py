"""The proxy of ``make cluster``: connections go to servers in turn and past dead ones, and their bytes flow at once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing

import pytest

from connection_proxy import ConnectionProxy
from support.ports import free_port

pytestmark = pytest.mark.anyio
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncGenerator[int]:
    """Answer connections; yield the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            await answer(reader, writer)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


def saying(name: bytes) -> Answer:
    """Return an answer that reads all, and then says its name and what it has read."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name + await reader.read())

    return answer


async def ask(port: int, text: bytes = b"") -> bytes:
    """Send a text and its end; return the whole answer."""
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with closing(writer):
            writer.write(text)
            writer.write_eof()
            answer = await reader.read()
        await writer.wait_closed()
    return answer


async def test_connections_take_turns_and_skip_a_dead_server() -> None:
    proxy = ConnectionProxy()
    async with server(saying(b"a")) as first, server(saying(b"b")) as second, proxy.listening(0) as port:
        proxy.ports.extend([first, free_port(), second])
        answers = [await ask(port, b"-" * 200_000) for _ in range(4)]
    assert [answer[:1] for answer in answers] == [b"a", b"b", b"a", b"b"]
    assert {len(answer) for answer in answers} == {200_001}


async def test_without_a_server_a_connection_is_ended() -> None:
    async with ConnectionProxy([free_port()]).listening(0) as port:
        assert await ask(port) == b""


async def test_a_stream_flows_while_it_is_written() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)

    async with server(echo) as behind, ConnectionProxy([behind]).listening(0) as port, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with closing(writer):
            for line in (b"one\n", b"two\n"):
                writer.write(line)
                assert await reader.readline() == line
        await writer.wait_closed()


async def test_a_server_that_breaks_off_breaks_the_client_off() -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.transport.abort()

    async with server(break_off) as behind, ConnectionProxy([behind]).listening(0) as port, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with closing(writer):
            writer.write(b"hello\n")
            assert await reader.read() == b""
