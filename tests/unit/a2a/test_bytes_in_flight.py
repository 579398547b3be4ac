"""The budget of the bytes of large requests: who gets room, who waits, and for how long."""

import asyncio

import pytest

from isthmus.a2a.server.http.bytes_in_flight import BytesInFlight, NoRoomError, Room

pytestmark = pytest.mark.anyio

SECONDS = 30.0


def begun(budget: BytesInFlight, user: str, size: int) -> "asyncio.Task[Room]":
    return asyncio.create_task(budget.take(user, size, SECONDS))


async def turns() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_requests_have_room_until_the_budget_is_used_and_then_wait_in_turn() -> None:
    budget = BytesInFlight(100, 100)
    first, second = await budget.take("a", 60, SECONDS), await budget.take("b", 40, SECONDS)
    large, small = begun(budget, "c", 70), begun(budget, "d", 10)
    await turns()
    assert (large.done(), small.done(), budget.used) == (False, False, 100)
    second.release()
    await turns()
    assert (large.done(), small.done()) == (False, False)  # 40 bytes are free, but the large one came first
    first.release()
    await turns()
    assert (large.done(), small.done(), budget.used) == (True, True, 80)
    for room in (await large, await small):
        room.release()
        room.release()
    assert budget.used == 0


async def test_a_user_without_room_keeps_nobody_else_waiting() -> None:
    budget = BytesInFlight(100, 50)
    first = await budget.take("a", 50, SECONDS)
    own, other = begun(budget, "a", 10), begun(budget, "b", 50)
    await turns()
    assert (own.done(), other.done()) == (False, True)
    first.release()
    await turns()
    assert own.done()
    (await own).release()
    (await other).release()
    assert budget.used == 0


async def test_a_request_that_is_larger_than_the_budget_is_read_alone() -> None:
    budget = BytesInFlight(100, 50)
    first = await budget.take("a", 1000, SECONDS)
    second = begun(budget, "a", 1)
    await turns()
    assert (second.done(), budget.used) == (False, 50)
    first.release()
    (await second).release()
    assert budget.used == 0


@pytest.mark.parametrize(("user", "whose"), [("a", "you have"), ("b", "the server has")])
async def test_who_waits_for_too_long_is_told_whose_requests_are_in_the_way(user: str, whose: str) -> None:
    budget = BytesInFlight(60, 50)
    room = await budget.take("a", 50, SECONDS)
    with pytest.raises(NoRoomError, match=f"^{whose} as many large requests"):
        await budget.take(user, 20, 0.01)
    assert budget.used == 50
    room.release()
    (await budget.take(user, 20, SECONDS)).release()


async def test_a_waiter_that_leaves_takes_nothing_with_it() -> None:
    budget = BytesInFlight(100, 100)
    room = await budget.take("a", 100, SECONDS)
    first, second = begun(budget, "b", 100), begun(budget, "c", 50)
    await turns()
    first.cancel()
    room.release()  # in the same turn: the first may have its room already
    await asyncio.wait({first})
    assert first.cancelled()
    (await second).release()
    late = begun(budget, "d", 100)
    await turns()
    assert late.done()
    late.cancel()
    (await late).release()
    assert budget.used == 0
