import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.listeners.gathering import GATHERED_BYTES, GatheringTransport

pytestmark = pytest.mark.anyio


class Wire(asyncio.Transport):
    """The transport behind it, which records every write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        assert not self.closed
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def test_what_is_written_in_one_turn_of_the_loop_goes_out_in_one_piece() -> None:
    wire = Wire()
    transport = GatheringTransport(wire)
    for piece in (b"head", b"", b"event", b"end"):
        transport.write(piece)
    assert wire.writes == []
    await asyncio.sleep(0)
    assert wire.writes == [b"headeventend"]
    transport.write(b"next turn")
    await asyncio.sleep(0)
    assert wire.writes == [b"headeventend", b"next turn"]


async def test_much_is_written_at_once_so_that_the_connection_can_push_back() -> None:
    wire = Wire()
    transport = GatheringTransport(wire)
    transport.write(b"a")
    transport.write(bytes(GATHERED_BYTES))
    assert wire.writes == [b"a" + bytes(GATHERED_BYTES)]


async def test_closing_writes_what_is_left() -> None:
    wire = Wire()
    transport = GatheringTransport(wire)
    transport.write(b"the end")
    transport.close()
    assert (wire.writes, wire.closed, transport.is_closing()) == ([b"the end"], True, True)


async def test_nothing_is_written_into_a_connection_that_was_lost() -> None:
    wire = Wire()
    transport = GatheringTransport(wire)
    transport.write(b"too late")
    wire.closed = True
    await asyncio.sleep(0)
    assert wire.writes == []


@given(st.lists(st.one_of(st.binary(max_size=50), st.just(b"x" * GATHERED_BYTES), st.none()), max_size=20))
def test_bytes_keep_their_order_whatever_the_turns(steps: list[bytes | None]) -> None:
    async def write_all(done: Callable[[Wire], None]) -> None:
        wire = Wire()
        transport = GatheringTransport(wire)
        for step in steps:
            if step is None:
                await asyncio.sleep(0)
            else:
                transport.write(step)
        transport.close()
        done(wire)

    def check(wire: Wire) -> None:
        assert b"".join(wire.writes) == b"".join(step for step in steps if step is not None)

    asyncio.run(write_all(check))
