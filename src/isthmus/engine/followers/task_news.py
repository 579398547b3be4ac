"""News of tasks for their followers in this process: that there may be more to read, wherever the work is done."""

import asyncio
import contextlib
from collections.abc import Generator


class TaskWatch:
    """A follower's view of the news of one task."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.has_progress = False
        """Whether there may be new progress of a call in another process."""

    def clear(self) -> None:
        """Forget what was news, before reading it."""
        self._event.clear()

    def notify(self, *, has_progress: bool = False) -> None:
        """Wake the follower."""
        self.has_progress |= has_progress
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for news, at most ``seconds``; return whether there are any."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()


class TaskNews:
    """The followers of all tasks in this process."""

    def __init__(self) -> None:
        self._watches: dict[str, set[TaskWatch]] = {}

    @contextlib.contextmanager
    def watch(self, task_id: str) -> Generator[TaskWatch]:
        """TaskWatch one task."""
        watch = TaskWatch()
        watches = self._watches.setdefault(task_id, set())
        watches.add(watch)
        try:
            yield watch
        finally:
            watches.discard(watch)
            if not watches and self._watches.get(task_id) is watches:
                del self._watches[task_id]

    def notify(self, task_id: str, *, has_progress: bool = False) -> None:
        """Wake the followers of a task."""
        for watch in self._watches.get(task_id, ()):
            watch.notify(has_progress=has_progress)

    def notify_all(self) -> None:
        """Wake every follower."""
        for watches in self._watches.values():
            for watch in watches:
                watch.notify()
