"""Accepting connections: silent ones are closed first, those with a token stay, and a lack of descriptors pauses it."""

import asyncio
import logging
import resource
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from isthmus.listeners.beginnings import ReadBeginning, any_beginning, http_beginning
from isthmus.listeners.connection_slot import SlotProtocol
from isthmus.listeners.limits import ListenerLimits
from isthmus.listeners.listener import Listener
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the protocol waits for the rest of a request")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Echo(SlotProtocol):
    """A protocol that sends back its input; ``token`` counts as a token."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if b"token" in data and self.slot is not None:
            self.slot.show_token()
        self.transport.write(data)


@asynccontextmanager
async def _listening(
    *,
    kept: int = 4,
    silence: float = 30,
    defer: int = 0,
    read_beginning: ReadBeginning = any_beginning,
) -> AsyncGenerator[tuple[Listener, int]]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    limits = ListenerLimits(
        descriptor_share=0.5,
        head_seconds=silence,
        maximum_unproven=kept,
        defer_seconds=defer,
        pause_seconds=0.01,
    )
    listener = Listener(bound, lambda _: Echo(), name="the server", limits=limits, read_beginning=read_beginning)
    await listener.start_serving()
    try:
        yield listener, bound.getsockname()[1]
    finally:
        listener.close()
        await listener.wait_closed()


async def _opened(port: int, said: bytes = b"") -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if said:
        await _echo((reader, writer), said)
    return reader, writer


async def _echo(streams: Streams, said: bytes) -> None:
    streams[1].write(said)
    async with asyncio.timeout(30):
        assert await streams[0].readexactly(len(said)) == said


async def _is_cut(streams: Streams) -> bool:
    async with asyncio.timeout(30):
        with suppress(ConnectionResetError):
            return await streams[0].read() == b""
        return True


async def _closed(*connections: Streams) -> None:
    for _, writer in connections:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_the_oldest_silent_connections_give_way_and_one_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with _listening() as (_, port):
        silent = [await _opened(port) for _ in range(20)]
        for streams in silent[:17]:  # four are kept, three of them of one address
            assert await _is_cut(streams)
        for streams in silent[17:]:
            await _echo(streams, b"late")
        await _closed(*silent)
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("isthmus")]
    assert "the server" in line
    assert "127.0.0.1" in line


async def test_silence_displaces_nobody_who_speaks() -> None:
    async with _listening() as (_, port):
        speaking = await _opened(port, b"hello")
        silent = [await _opened(port) for _ in range(20)]
        assert await _is_cut(silent[0])
        await _echo(speaking, b"still here")
        await _closed(speaking, *silent)


async def test_a_connection_that_has_shown_a_token_is_not_dropped() -> None:
    async with _listening() as (_, port):
        proven = await _opened(port, b"token")
        strangers = [await _opened(port, b"hello") for _ in range(20)]
        assert await _is_cut(strangers[0])
        await _echo(proven, b"idle until now")
        await _closed(proven, *strangers)


async def test_room_is_made_again_by_connections_that_end() -> None:
    async with _listening() as (_, port):
        stays = await _opened(port, b"hello")
        for _ in range(20):
            await _closed(await _opened(port, b"hello"))
        await _echo(stays, b"still here")
        await _closed(stays)


async def test_a_connection_that_says_nothing_in_time_is_closed() -> None:
    async with _listening(silence=0.1) as (_, port):
        silent = await _opened(port)
        assert await _is_cut(silent)
        await _closed(silent)


@_ON_LINUX
async def test_connections_with_part_of_a_request_get_no_protocol_and_displace_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\n"
    made: list[Echo] = []
    connected = Echo.connection_made

    def counted(self: Echo, transport: asyncio.BaseTransport) -> None:
        made.append(self)
        connected(self, transport)

    monkeypatch.setattr(Echo, "connection_made", counted)
    async with _listening(defer=30, read_beginning=http_beginning) as (_, port):
        whole = await _opened(port, head + b"\r\n")
        parts = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for streams, length in zip(parts, range(1, 21), strict=True):
            streams[1].write(head[:length])
        last, length = parts[-1], 20
        assert await _is_cut(parts[0])
        await _echo(whole, b"still here")
        assert len(made) == 1
        last[1].write(head[length:])
        await last[1].drain()
        last[1].write(b"\r\n")
        async with asyncio.timeout(30):
            assert await last[0].readexactly(len(head) + 2) == head + b"\r\n", "nothing of it was lost"
        await _closed(whole, *parts)


async def test_what_is_no_request_is_answered_and_closed() -> None:
    async with _listening(read_beginning=http_beginning) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01")
        async with asyncio.timeout(30):
            assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        await _closed((reader, writer))


@_ON_LINUX
@pytest.mark.parametrize("part", [b"", b"P", b"POST / HTTP/1.1\r\n"])
async def test_a_request_that_does_not_come_to_its_end_is_closed(part: bytes) -> None:
    async with _listening(silence=0.1, read_beginning=http_beginning) as (_, port):
        streams = await asyncio.open_connection("127.0.0.1", port)
        streams[1].write(part)
        assert await _is_cut(streams)
        await _closed(streams)
    async with _listening(silence=600, read_beginning=http_beginning) as (_, port):
        streams = await asyncio.open_connection("127.0.0.1", port)
        streams[1].write(part)
        streams[1].write_eof()
        assert await _is_cut(streams), "nothing more can come"
        await _closed(streams)


async def test_where_the_kernel_keeps_silent_connections_a_speaking_one_is_served() -> None:
    async with _listening(defer=30) as (_, port):
        silent = [await _opened(port) for _ in range(20)]
        speaking = await _opened(port, b"hello")
        await _closed(speaking, *silent)


async def test_after_the_end_silent_connections_are_closed_and_others_are_not() -> None:
    async with _listening() as (listener, port):
        speaking, silent = await _opened(port, b"hello"), await _opened(port)
        await asyncio.sleep(0)
        listener.close()
        assert await _is_cut(silent)
        await _echo(speaking, b"still here")
        assert not listener.is_serving()
        await _closed(speaking, silent)


async def test_exhausted_descriptors_pause_accepting_with_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    not_accepted = Listener._not_accepted  # pyright: ignore[reportPrivateUsage]
    failures: list[OSError] = []

    async def counted(listener: Listener, error: OSError) -> None:
        failures.append(error)
        await not_accepted(listener, error)

    monkeypatch.setattr(Listener, "_not_accepted", counted)
    async with _listening() as (_, port):
        clients = [socket.socket() for _ in range(3)]
        try:
            lowest_free = socket.socket()
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free.fileno(), hard))
            lowest_free.close()
            for client in clients:
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
                await asyncio.get_running_loop().sock_sendall(client, b"hello")
            await eventually_async(lambda: len(failures) >= 3, what="attempts that fail")
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            async with asyncio.timeout(30):
                for client in clients:
                    assert await asyncio.get_running_loop().sock_recv(client, 100) == b"hello"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for client in clients:
                client.close()
    assert caplog.text.count("\n") == 1
    assert "descriptors" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


async def test_no_descriptor_is_lost() -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    async with _listening() as (_, port):
        for _ in range(10):
            connections = [await _opened(port, said) for said in (b"", b"hello", b"token") for _ in range(4)]
            await _closed(*connections)
    if before:
        await eventually_async(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before, what="closed descriptors")
