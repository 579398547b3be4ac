"""Standard input and output as a channel: whole lines come out, and the end comes in any case."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from isthmus.runtime.standard_streams import StandardStreams
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Yield the reading and writing end of the input, then of the output; the test may close them itself."""
    incoming, our_input = os.pipe()
    our_output, outgoing = os.pipe()
    ends = (incoming, our_input, our_output, outgoing)
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


async def all_of(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def read_up_to(end: int, size: int) -> bytes:
    """Read from a pipe in a thread, as a peer does."""
    data = b""
    while len(data) < size:
        data += await asyncio.to_thread(os.read, end, 65_536)
    return data


async def test_all_that_comes_is_read_to_its_end(pipes: tuple[int, int, int, int]) -> None:
    incoming, our_input, _, outgoing = pipes
    streams = StandardStreams(incoming, outgoing)
    reading = asyncio.create_task(all_of(streams.chunks()))
    sent = os.urandom(300_000)
    for start in range(0, len(sent), 10_000):
        await asyncio.to_thread(os.write, our_input, sent[start : start + 10_000])
    os.close(our_input)
    assert await asyncio.wait_for(reading, 10) == sent


async def test_a_file_can_be_the_input_and_the_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x" * 200_000)
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        streams = StandardStreams(source.fileno(), target.fileno())
        assert await asyncio.wait_for(all_of(streams.chunks()), 10) == b"x" * 200_000
        await streams.write(b"y" * 200_000)
    assert (tmp_path / "out").read_bytes() == b"y" * 200_000


async def test_the_input_can_be_ended_while_nothing_comes(pipes: tuple[int, int, int, int]) -> None:
    incoming, our_input, _, outgoing = pipes
    streams = StandardStreams(incoming, outgoing)
    reading = asyncio.create_task(all_of(streams.chunks()))
    os.write(our_input, b"before")
    await asyncio.sleep(0)
    streams.end()
    assert await asyncio.wait_for(reading, 10) in (b"", b"before")
    os.close(our_input)  # or the reading thread waits on


async def test_the_input_can_be_ended_while_more_comes_than_is_taken(pipes: tuple[int, int, int, int]) -> None:
    incoming, our_input, _, outgoing = pipes
    streams = StandardStreams(incoming, outgoing)
    chunks = streams.chunks()
    os.write(our_input, b"one")
    assert await anext(chunks) == b"one"
    writing = asyncio.create_task(asyncio.to_thread(os.write, our_input, b"x" * 60_000))
    await writing
    streams.end()
    assert len(await asyncio.wait_for(all_of(chunks), 10)) <= 60_000
    os.close(our_input)


async def test_large_messages_come_out_whole_and_in_order(pipes: tuple[int, int, int, int]) -> None:
    incoming, _, our_output, outgoing = pipes
    streams = StandardStreams(incoming, outgoing)
    lines = [b"%d" % number * 300_000 + b"\n" for number in range(5)]
    writing = [asyncio.create_task(streams.write(line)) for line in lines]
    received = await asyncio.wait_for(read_up_to(our_output, sum(map(len, lines))), 30)
    assert received == b"".join(lines)
    await asyncio.gather(*writing)


async def test_a_message_whose_writer_is_cancelled_comes_out_whole(pipes: tuple[int, int, int, int]) -> None:
    incoming, _, our_output, outgoing = pipes
    streams = StandardStreams(incoming, outgoing)
    first = asyncio.create_task(streams.write(b"a" * 300_000 + b"\n"))
    await eventually_async(lambda: os.get_blocking(outgoing) is False)  # it has begun
    second = asyncio.create_task(streams.write(b"b" * 10 + b"\n"))
    first.cancel()
    received = await asyncio.wait_for(read_up_to(our_output, 300_012), 30)
    assert received == b"a" * 300_000 + b"\n" + b"b" * 10 + b"\n"
    await second
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_closed_output_is_an_error(pipes: tuple[int, int, int, int]) -> None:
    incoming, _, our_output, outgoing = pipes
    os.close(our_output)
    with pytest.raises(BrokenPipeError):
        await StandardStreams(incoming, outgoing).write(b"x")


async def test_an_output_that_is_closed_during_a_message_is_an_error(pipes: tuple[int, int, int, int]) -> None:
    incoming, _, our_output, outgoing = pipes
    writing = asyncio.create_task(StandardStreams(incoming, outgoing).write(b"x" * 1_000_000))
    await eventually_async(lambda: os.get_blocking(outgoing) is False)
    os.close(our_output)
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(writing, 10)


async def test_the_end_gives_up_output_that_nobody_reads(pipes: tuple[int, int, int, int]) -> None:
    incoming, our_input, _, outgoing = pipes
    streams = StandardStreams(incoming, outgoing)
    reading = asyncio.create_task(all_of(streams.chunks()))
    writing = [asyncio.create_task(streams.write(b"x" * 1_000_000)) for _ in range(2)]
    await eventually_async(lambda: os.get_blocking(outgoing) is False)
    streams.end()
    for task in writing:
        with pytest.raises(BrokenPipeError, match="the output was not read until the end"):
            await asyncio.wait_for(task, 10)
    assert await asyncio.wait_for(reading, 10) == b""
    os.close(our_input)  # or the reading thread waits on
