import asyncio

import pytest

from isthmus.mcp_host.connection.connection_context import StartLimit
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_no_more_than_its_places_are_taken_and_each_that_is_given_up_lets_one_in() -> None:
    gate = StartLimit(2, longest=1000)
    leave = [await gate.enter() for _ in range(2)]
    third = asyncio.create_task(gate.enter())
    await asyncio.wait({third}, timeout=0.05)
    assert not third.done()
    leave[0]()
    leave[0]()  # it has only one to release
    (await asyncio.wait_for(third, 60))()
    leave[1]()


async def test_whoever_hangs_keeps_the_others_waiting_for_a_while_only() -> None:
    gate = StartLimit(1, longest=0.01)
    leave = [await asyncio.wait_for(gate.enter(), 60) for _ in range(5)]
    for one in leave:
        one()
    strict = StartLimit(1, longest=1000)
    first = await strict.enter()
    waiting = asyncio.create_task(strict.enter())
    waiting.cancel()
    await eventually_async(waiting.done)
    first()
    (await asyncio.wait_for(strict.enter(), 60))()
