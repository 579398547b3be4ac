"""Work whose first wait is told: its result, errors and cancellation are as if it were awaited itself."""

import asyncio

import pytest

from isthmus.runtime.first_wait import on_first_wait

pytestmark = pytest.mark.anyio


async def _plus_one(number: int, waits: int) -> int:
    for _ in range(waits):
        await asyncio.sleep(0)
    return number + 1


@pytest.mark.parametrize(("waits", "told"), [(0, 0), (1, 1), (3, 1)])
async def test_only_the_first_wait_is_told(waits: int, told: int) -> None:
    calls: list[None] = []
    assert await on_first_wait(_plus_one(1, waits), lambda: calls.append(None)) == 2
    assert len(calls) == told


@pytest.mark.parametrize("waits", [0, 1])
async def test_an_error_of_the_work_is_raised(waits: int) -> None:
    async def failing() -> None:
        await _plus_one(1, waits)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await on_first_wait(failing(), lambda: None)


async def test_a_cancellation_reaches_the_work_which_may_wait_once_more() -> None:
    steps: list[str] = []

    async def careful() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            steps.append("cancelled")
            await asyncio.sleep(0)
        return "ended"

    async def calling() -> str:
        return await on_first_wait(careful(), lambda: steps.append("waits"))

    task = asyncio.create_task(calling())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "ended"
    assert steps == ["waits", "cancelled"]
