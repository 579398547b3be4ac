"""The places for the tasks that a process runs at once. No I/O.

Tasks of subagents need none: they are a part of the work of the task that began them, which waits for them.
"""

import contextlib
from collections.abc import Generator

UNLIMITED = 64
"""Number of free slots where there is no limit: the most tasks that are taken in one step."""


class Slots:
    """Up to ``limit`` places, or any number if that is None. A task holds one from its claim to the end of its run."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._held: set[str] = set()
        self._reserved = 0

    @property
    def free(self) -> int:
        """The number of free places."""
        return UNLIMITED if self.limit is None else max(0, self.limit - len(self._held) - self._reserved)

    @property
    def held(self) -> int:
        """The number of tasks that hold a place."""
        return len(self._held)

    def hold(self, task_id: str) -> None:
        """Give a task a place, also if none is free."""
        self._held.add(task_id)

    def release(self, task_id: str) -> None:
        """Free the place of a task, if it has one."""
        self._held.discard(task_id)

    @contextlib.contextmanager
    def reserved(self, count: int) -> Generator[None]:
        """Keep ``count`` places for tasks that are about to be taken."""
        self._reserved += count
        try:
            yield
        finally:
            self._reserved -= count
