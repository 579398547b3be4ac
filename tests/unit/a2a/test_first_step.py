import asyncio
from collections.abc import AsyncGenerator

import pytest

from isthmus.a2a.server.http.first_step import FirstStep

pytestmark = pytest.mark.anyio


class Source:
    """A source that yields ``one`` at once, then waits for ``second``; it records its exception at the end."""

    def __init__(self) -> None:
        self.second: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.ended_by: list[type[BaseException]] = []

    async def frames(self) -> AsyncGenerator[str, None]:
        try:
            yield "one"
            yield await self.second
        except BaseException as error:
            await asyncio.sleep(0)
            self.ended_by.append(type(error))
            raise


async def nothing() -> None:
    pass


async def test_what_is_there_needs_no_waiting_and_an_end_is_raised_at_once() -> None:
    source = Source()
    source.second.set_result("two")
    frames = source.frames()
    for expected in ("one", "two"):
        step = FirstStep(anext(frames))
        assert step.is_done
        assert step.result == expected
    with pytest.raises(StopAsyncIteration):
        FirstStep(anext(frames))


async def test_something_is_done_before_the_rest_is_waited_for() -> None:
    source = Source()
    frames = source.frames()
    await anext(frames)
    step = FirstStep(anext(frames))
    assert not step.is_done
    done: list[str] = []

    async def before() -> None:
        await asyncio.sleep(0)
        done.append("before")
        source.second.set_result("two")

    assert await step.after(before) == "two"
    assert done == ["before"]


@pytest.mark.parametrize("where", ["before", "waiting"])
async def test_a_cancellation_ends_what_was_begun(where: str) -> None:
    source = Source()
    frames = source.frames()
    await anext(frames)
    never = asyncio.Event()

    async def follow() -> str:
        step = FirstStep(anext(frames))
        return await step.after(never.wait if where == "before" else nothing)

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert source.ended_by == [asyncio.CancelledError]
    await frames.aclose()


async def test_an_error_of_what_is_done_before_is_raised_in_what_was_begun() -> None:
    source = Source()
    frames = source.frames()
    await anext(frames)

    async def before() -> None:
        raise OSError("the reader has left")

    step = FirstStep(anext(frames))
    with pytest.raises(OSError, match="the reader has left"):
        await step.after(before)
    assert source.ended_by == [OSError]
