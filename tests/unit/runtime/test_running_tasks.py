"""Tasks in the background: how their owner ends them."""

import asyncio

import pytest

from isthmus.runtime.running_tasks import RunningTasks

pytestmark = pytest.mark.anyio


async def test_tasks_are_waited_for_and_the_rest_is_cancelled_without_an_error() -> None:
    tasks, release, ended = RunningTasks(), asyncio.Event(), list[str]()

    async def quick() -> None:
        await release.wait()
        ended.append("quick")

    async def failing() -> None:
        raise ValueError("secret")

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless")

    started = tasks.start(quick(), "named")
    tasks.start(failing())
    tasks.start(endless())
    assert started.get_name() == "named"
    release.set()
    await tasks.end(0.1)
    assert ended == ["quick", "endless"]


async def test_cancelling_waits_for_what_tasks_do_at_their_end() -> None:
    tasks, ended = RunningTasks(), list[bool]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # delay: one turn of the loop, in which a task cleans up
            ended.append(True)
            raise

    tasks.start(work())
    await asyncio.sleep(0)  # delay: one turn of the loop, in which the task begins
    await tasks.cancel()
    await tasks.cancel()
    assert ended == [True]


async def test_stopping_cancels_without_waiting() -> None:
    tasks = RunningTasks()
    started = [tasks.start(asyncio.Event().wait()) for _ in range(2)]
    tasks.stop()
    assert len(tasks) == 2
    await tasks.wait()
    assert all(task.cancelled() for task in started)
    assert len(tasks) == 0
