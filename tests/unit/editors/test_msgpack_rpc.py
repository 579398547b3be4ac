import asyncio
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.editors.neovim.editor import NeovimLimits, attach
from isthmus.editors.neovim.msgpack_rpc import Message, RpcCodec, RpcConnection, connect
from isthmus.ide.editor import EditorError
from isthmus.rpc.messages import ErrorResponse, Notification, Request, Response, RpcError
from isthmus.rpc.pending import RpcClosedError, RpcTimeoutError

Handler: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(allow_nan=False),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.tuples(st.text(), st.lists(values, max_size=3)), max_size=4), st.integers(1, 7))
def test_messages_arrive_whole_however_the_bytes_are_cut(messages: list[tuple[str, list[object]]], size: int) -> None:
    codec = RpcCodec()
    data = b"".join(codec.notification(method, params) for method, params in messages)
    received: list[Message] = []
    for start in range(0, len(data), size):
        received += codec.feed(data[start : start + size])
    assert received == [Notification(method, tuple(params)) for method, params in messages]


@given(st.binary(min_size=1))
@example(b"\xde\x00\x01\x80\x00")
def test_whatever_comes_is_messages_or_an_rpc_error(data: bytes) -> None:
    codec = RpcCodec()
    try:
        received = codec.feed(data)
    except RpcError:
        return
    assert all(isinstance(message, (Request, Response, ErrorResponse, Notification)) for message in received)


def test_handles_become_numbers_and_bytes_that_are_no_utf8_survive() -> None:
    codec = RpcCodec()
    handle = msgpack.packb([1, 7, None, [msgpack.ExtType(0, msgpack.packb(42)), "x"]])
    assert codec.feed(handle) == [Response(7, [42, "x"])]
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert codec.feed(codec.notification("m", [name])) == [Notification("m", (name,))]


def test_text_that_cannot_be_sent_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(RpcError, match="Unicode"):
        RpcCodec().request(1, "m", ["\ud800"])


@asynccontextmanager
async def server(handler: Handler) -> AsyncGenerator[str]:
    address = str(Path(tempfile.mkdtemp()) / "socket")
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await handler(reader, writer)

    listening = await asyncio.start_unix_server(handle, address)
    try:
        yield address
    finally:
        listening.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def answering(*results: object) -> Handler:
    """Return a server that answers the first requests with these results, then nothing."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        codec = RpcCodec()
        rest = list(results)
        while data := await reader.read(65536):
            for message in codec.feed(data):
                if isinstance(message, Request) and rest:
                    writer.write(msgpack.packb([1, message.id, None, rest.pop(0)]))
        writer.close()

    return handle


async def connected(address: str, ends: list[str] | None = None) -> RpcConnection:
    return await connect(address, lambda _: None, lambda: ends.append("end") if ends is not None else None)


@pytest.mark.anyio
async def test_a_request_without_an_answer_ends_at_its_deadline_and_others_go_on() -> None:
    async with server(answering("first")) as address:
        connection = await connected(address)
        assert await connection.request("m", timeout=30) == "first"
        with pytest.raises(RpcTimeoutError, match="slow"):
            await connection.request("slow", timeout=0.05)
        assert not connection.is_closed
        await connection.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("last_words", [b"", b"\xc1 garbage", b"\x93\x01\x01"])
async def test_a_lost_connection_fails_what_waits_and_is_told_once(last_words: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(last_words)
        writer.close()

    ends: list[str] = []
    async with server(hang_up) as address:
        connection = await connected(address, ends)
        with pytest.raises(RpcClosedError):
            await connection.request("m", timeout=30)
        assert connection.is_closed
        with pytest.raises(RpcClosedError):
            await connection.request("m", timeout=30)
        connection.notify("m")
        await connection.aclose()
        assert ends == ["end"]


@pytest.mark.anyio
async def test_a_request_of_the_peer_is_answered_with_an_error() -> None:
    answers: list[Message] = []
    done = asyncio.Event()

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(RpcCodec().request(9, "do_something", []))
        answers.extend(RpcCodec().feed(await reader.read(65536)))
        done.set()
        writer.close()

    async with server(ask) as address:
        connection = await connected(address)
        await asyncio.wait_for(done.wait(), 30)
        await connection.aclose()
    assert answers == [ErrorResponse(9, 0, "do_something: not served here")]


@pytest.mark.anyio
async def test_a_neovim_that_is_too_old_is_refused_in_one_line_with_its_version() -> None:
    version = {"major": 0, "minor": 7, "patch": 2}
    async with server(answering([3, {"version": version}])) as address:
        with pytest.raises(EditorError) as caught:
            await attach(address)
    assert str(caught.value) == "Neovim 0.7.2 is too old: Isthmus needs Neovim 0.8 or newer"


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [None, 7, [1], [1, {}], [1, {"version": "0.11"}]])
async def test_a_server_that_is_no_neovim_is_refused(answer: object) -> None:
    async with server(answering(answer)) as address:
        with pytest.raises(EditorError, match="does not answer as Neovim does"):
            await attach(address)


@pytest.mark.anyio
async def test_a_neovim_that_does_not_answer_costs_the_deadline() -> None:
    async with server(answering()) as address:
        with pytest.raises(EditorError, match="waits at a prompt"):
            await attach(address, NeovimLimits(start_seconds=0.05))
