"""Tasks that run beside the one who started them; a reference to each is kept until it ends: asyncio keeps none."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")


class RunningTasks:
    """The tasks of one owner, who ends them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def start(self, work: Coroutine[object, object, T], name: str | None = None) -> asyncio.Task[T]:
        """Begin a task, and return it."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def __len__(self) -> int:
        """Return the number of tasks that run."""
        return len(self._tasks)

    def stop(self) -> None:
        """Cancel the tasks without waiting for them."""
        for task in self._tasks:
            task.cancel()

    async def wait(self) -> None:
        """Wait for the tasks. Their errors are not raised."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel the tasks, and wait for them. Their errors are not raised."""
        await _cancel(tuple(self._tasks))

    async def end(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the tasks, and cancel those that still run. Their errors are not raised."""
        tasks = tuple(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        await _cancel(tasks)


async def _cancel(tasks: Sequence[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
