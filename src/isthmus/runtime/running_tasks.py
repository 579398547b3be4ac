"""Tasks that run beside the one who started them; a reference to each is kept until it ends: asyncio keeps none."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class RunningTasks:
    """The tasks of one owner, who ends them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def start(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Begin a task, and return it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the tasks, and cancel those that still run. Their errors are not raised."""
        tasks = tuple(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
