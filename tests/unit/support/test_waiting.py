import asyncio
import itertools

import pytest

from support.waiting import eventually, eventually_async


def test_the_first_true_value_of_a_condition_is_returned() -> None:
    values = iter([None, "", "ready"])
    assert eventually(lambda: next(values)) == "ready"


def test_a_condition_with_a_failed_assertion_is_looked_at_again() -> None:
    counter = itertools.count()

    def third_look() -> bool:
        assert next(counter) == 2
        return True

    assert eventually(third_look)


def test_a_passed_deadline_says_what_was_waited_for_and_what_came_last() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.02 s: three files; last seen: \[\]"):
        eventually(list[str], 0.02, what="three files")


def test_other_exceptions_of_a_condition_are_passed_on_at_once() -> None:
    looks: list[int] = []

    def broken() -> bool:
        looks.append(1)
        raise KeyError("gone")

    with pytest.raises(KeyError):
        eventually(broken)
    assert looks == [1]


@pytest.mark.anyio
async def test_the_event_loop_goes_on_while_a_condition_is_awaited() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, done.set)

    async def is_done() -> bool:
        return done.is_set()

    assert await eventually_async(is_done)
    assert await eventually_async(done.is_set)


@pytest.mark.anyio
async def test_an_awaitable_that_never_ends_is_cut_off_at_the_deadline() -> None:
    cancelled = asyncio.Event()

    async def hangs() -> bool:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    with pytest.raises(AssertionError, match="no answer from the condition"):
        await eventually_async(hangs, 0.03)
    assert cancelled.is_set()
