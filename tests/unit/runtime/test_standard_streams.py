"""Standard input and output as a channel: whole lines come out, and the end comes in any case."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isthmus.runtime.standard_streams import StandardStreams
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass
class Pipes:
    """File descriptors of two pipes: the program's input with our end of it, and our end of its output."""

    incoming: int
    our_input: int
    our_output: int
    outgoing: int
    closed: set[int] = field(default_factory=set[int])

    def close(self, *ends: int) -> None:
        """Close each end once: a number that is closed may already be another file's."""
        for end in set(ends) - self.closed:
            os.close(end)
        self.closed.update(ends)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    (incoming, our_input), (our_output, outgoing) = os.pipe(), os.pipe()
    pipes = Pipes(incoming, our_input, our_output, outgoing)
    yield pipes
    pipes.close(our_input, our_output)
    # A thread that still reads from a closed number would take what comes for the next test.
    for thread in threading.enumerate():
        if thread.name == "standard input":
            thread.join(10)
            assert not thread.is_alive()
    pipes.close(incoming, outgoing)


async def all_of(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def read_up_to(end: int, size: int) -> bytes:
    """Read from a pipe in a thread, as a peer does."""
    data = b""
    while len(data) < size:
        data += await asyncio.to_thread(os.read, end, 65_536)
    return data


async def test_all_that_comes_is_read_to_its_end(pipes: Pipes) -> None:
    streams = StandardStreams(pipes.incoming, pipes.outgoing)
    reading = asyncio.create_task(all_of(streams.chunks()))
    sent = os.urandom(300_000)
    for start in range(0, len(sent), 10_000):
        await asyncio.to_thread(os.write, pipes.our_input, sent[start : start + 10_000])
    pipes.close(pipes.our_input)
    assert await asyncio.wait_for(reading, 10) == sent


async def test_a_file_can_be_the_input_and_the_output(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x" * 200_000)
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        streams = StandardStreams(source.fileno(), target.fileno())
        assert await asyncio.wait_for(all_of(streams.chunks()), 10) == b"x" * 200_000
        await streams.write(b"y" * 200_000)
    assert (tmp_path / "out").read_bytes() == b"y" * 200_000


async def test_the_input_can_be_ended_while_nothing_comes(pipes: Pipes) -> None:
    streams = StandardStreams(pipes.incoming, pipes.outgoing)
    reading = asyncio.create_task(all_of(streams.chunks()))
    os.write(pipes.our_input, b"before")
    await asyncio.sleep(0)
    streams.end()
    assert await asyncio.wait_for(reading, 10) in (b"", b"before")
    pipes.close(pipes.our_input)


async def test_the_input_can_be_ended_while_more_comes_than_is_taken(pipes: Pipes) -> None:
    streams = StandardStreams(pipes.incoming, pipes.outgoing)
    chunks = streams.chunks()
    os.write(pipes.our_input, b"one")
    assert await anext(chunks) == b"one"
    writing = asyncio.create_task(asyncio.to_thread(os.write, pipes.our_input, b"x" * 60_000))
    await writing
    streams.end()
    assert len(await asyncio.wait_for(all_of(chunks), 10)) <= 60_000
    pipes.close(pipes.our_input)


async def test_large_messages_come_out_whole_and_in_order(pipes: Pipes) -> None:
    streams = StandardStreams(pipes.incoming, pipes.outgoing)
    lines = [b"%d" % number * 300_000 + b"\n" for number in range(5)]
    writing = [asyncio.create_task(streams.write(line)) for line in lines]
    received = await asyncio.wait_for(read_up_to(pipes.our_output, sum(map(len, lines))), 30)
    assert received == b"".join(lines)
    await asyncio.gather(*writing)


async def test_a_message_whose_writer_is_cancelled_comes_out_whole(pipes: Pipes) -> None:
    streams = StandardStreams(pipes.incoming, pipes.outgoing)
    first = asyncio.create_task(streams.write(b"a" * 300_000 + b"\n"))
    await eventually_async(lambda: os.get_blocking(pipes.outgoing) is False)  # it has begun
    second = asyncio.create_task(streams.write(b"b" * 10 + b"\n"))
    first.cancel()
    received = await asyncio.wait_for(read_up_to(pipes.our_output, 300_012), 30)
    assert received == b"a" * 300_000 + b"\n" + b"b" * 10 + b"\n"
    await second
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_closed_output_is_an_error(pipes: Pipes) -> None:
    pipes.close(pipes.our_output)
    with pytest.raises(BrokenPipeError):
        await StandardStreams(pipes.incoming, pipes.outgoing).write(b"x")


async def test_an_output_that_is_closed_during_a_message_is_an_error(pipes: Pipes) -> None:
    writing = asyncio.create_task(StandardStreams(pipes.incoming, pipes.outgoing).write(b"x" * 1_000_000))
    await eventually_async(lambda: os.get_blocking(pipes.outgoing) is False)
    pipes.close(pipes.our_output)
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(writing, 10)


async def test_the_end_gives_up_output_that_nobody_reads(pipes: Pipes) -> None:
    streams = StandardStreams(pipes.incoming, pipes.outgoing)
    reading = asyncio.create_task(all_of(streams.chunks()))
    writing = [asyncio.create_task(streams.write(b"x" * 1_000_000)) for _ in range(2)]
    await eventually_async(lambda: os.get_blocking(pipes.outgoing) is False)
    streams.end()
    for task in writing:
        with pytest.raises(BrokenPipeError, match="the output was not read until the end"):
            await asyncio.wait_for(task, 10)
    assert await asyncio.wait_for(reading, 10) == b""
    pipes.close(pipes.our_input)
