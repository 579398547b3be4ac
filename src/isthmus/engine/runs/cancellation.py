"""Cancels a task wherever it runs, or waits; interrupts one that runs here."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from isthmus.client import TaskNotCancelable, TaskNotFound
from isthmus.engine.followers.subscriptions import OTHERS_POLL_SECONDS
from isthmus.engine.runs.segment import RunningSegment
from isthmus.events import StateChange, TaskState
from isthmus.journal.port.base import Journal, StaleLease
from isthmus.journal.port.task_rows import ClaimedTask, TaskRow


class Cancellation:
    """The cancellation of tasks by one process, which works on ``segments``, each by the asyncio task in ``running``.

    ``take_idle`` claims a task that nobody works on and runs it; it returns None for other tasks.
    """

    def __init__(
        self,
        journal: Journal,
        segments: Mapping[str, RunningSegment],
        running: Mapping[str, "asyncio.Task[None]"],
        take_idle: Callable[[TaskRow], Awaitable[ClaimedTask | None]],
    ) -> None:
        self._journal = journal
        self._segments = segments
        self._running = running
        self._take_idle = take_idle

    async def cancel(self, task_id: str) -> None:
        """Cancel a task, and return once that is recorded.

        Raises:
            TaskNotFound: there is no such task.
            TaskNotCancelable: it has ended.
        """
        is_asked = False
        while True:
            row = await self._journal.task(task_id)
            if row is None and is_asked:
                return  # it was cancelled, and then deleted because the journal is full
            if row is None:
                raise TaskNotFound(f"there is no task {task_id[:100]}")
            if row.state is TaskState.CANCELED and is_asked:
                return
            is_asked = True
            if row.state.is_terminal:
                raise TaskNotCancelable(f"task {task_id} is {row.state}; only one that works or waits can be cancelled")
            if (running := self._running.get(task_id)) is not None:
                self._segments[task_id].cancel()
                await asyncio.wait([running])
            elif await self._take_idle(row) is not None:
                # The segment has not begun yet; cancelling keeps it from starting.
                self._segments[task_id].cancel()
            else:
                # Another process runs it and reads the inbox when it hears of it or its lease is renewed.
                stop = StateChange(TaskState.CANCELED)
                with contextlib.suppress(StaleLease):
                    if stop not in await self._journal.waiting(task_id, StateChange):
                        await self._journal.post(row, [stop])
                await asyncio.sleep(OTHERS_POLL_SECONDS)

    async def let_go(self, task_id: str) -> None:
        """Interrupt a task, and its subagents' tasks, if they run here, and release them for others to go on."""
        segment, running = self._segments.get(task_id), self._running.get(task_id)
        if segment is not None and running is not None:
            running.cancel()
            await asyncio.wait([running])
            await self._journal.release([segment.lease])
        for child in await self._journal.children(task_id):
            await self.let_go(child.task_id)
