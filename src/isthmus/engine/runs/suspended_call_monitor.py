"""Keeps the suspended calls of this process, which wait for a user in mid-work, in step with their tasks.

A task whose question was withdrawn or not answered in time is resumed. The calls of a task that was cancelled, or that
another process has claimed, are ended. A question whose process has ended is lost with the call that asked it, which is
detected here. Not here: the calls themselves, see :mod:`isthmus.agent.calls.suspended_calls`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.events import TaskState, ToolCallUpdate
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow
from isthmus.questions import QUESTION_MARK

LATEST_EVENTS = 1000
"""Maximum number of a task's latest events that are searched for the process that asked."""

log = logging.getLogger(__name__)

RunningOf: TypeAlias = Callable[[str], "asyncio.Task[None] | None"]
"""Returns the asyncio task that works on a task in this process."""
TakeUp: TypeAlias = Callable[[TaskRow], Awaitable[object]]
"""Claims a task at rest and runs it, unless another claim came first."""


class SuspendedCallMonitor:
    """Upkeep of the suspended calls of one process."""

    def __init__(self, suspended: SuspendedCalls, journal: Journal, running_of: RunningOf, take_up: TakeUp) -> None:
        self._suspended = suspended
        self._journal = journal
        self._running_of = running_of
        self._take_up = take_up
        self._work: set[asyncio.Task[None]] = set()
        suspended.on_due = self._due

    def holds(self, task_id: str) -> bool:
        """Return whether a call of the task is suspended in this process."""
        return self._suspended.holds(task_id)

    async def is_lost(self, row: TaskRow) -> bool:
        """Return whether an answer to a waiting task would reach no process, because the one that asked has ended.

        False if that process may be on another machine.
        """
        return any(map(self._journal.replicas.is_gone, await self._askers(row)))

    async def asker_elsewhere(self, row: TaskRow) -> str:
        """Return the other process whose call waits for the answer to a waiting task; empty if there is none."""
        is_gone, own = self._journal.replicas.is_gone, self._suspended.process
        askers = [asker for asker in await self._askers(row) if asker != own and not is_gone(asker)]
        return askers[-1] if askers else ""

    async def _askers(self, row: TaskRow) -> Sequence[str]:
        """Return the processes that asked what a waiting task asks, unless its calls wait here."""
        every = self._suspended.asks_only_here
        waiting = {call.tool_call_id for call in row.pending if every or QUESTION_MARK in call.tool_call_id}
        if not waiting or self._suspended.holds(row.task_id):
            return ()
        events = await self._journal.events(row.task_id, max(0, row.seq - LATEST_EVENTS), LATEST_EVENTS)
        updates = [item.event for item in events if isinstance(item.event, ToolCallUpdate)]
        askers = {item.tool_call.tool_call_id: item.asked_in for item in updates}
        return [asker for call, asker in askers.items() if call in waiting and asker is not None]

    def ended(self, task_id: str) -> None:
        """End in the background the calls of a task that is no longer waiting."""
        if self._suspended.holds(task_id):
            self._begin(self._suspended.discard(task_id))

    async def look(self) -> None:
        """End the calls of tasks that continued elsewhere or were deleted; retry tasks that could not be resumed."""
        for task_id in self._suspended.task_ids:
            if self._running_of(task_id) is not None:
                continue
            if not await self._waits_for_us(task_id):
                await self._suspended.discard(task_id)
            elif self._suspended.is_due(task_id):
                self._due(task_id)

    async def stop(self) -> None:
        """Stop resuming tasks."""
        self._suspended.on_due = None
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    async def aclose(self) -> None:
        """End every suspended call."""
        await self._suspended.aclose()
        await self.stop()

    def _due(self, task_id: str) -> None:
        self._begin(self._go_on(task_id))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="isthmus-suspended-calls")
        self._work.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("suspended calls could not be ended or resumed", exc_info=error)

    async def _go_on(self, task_id: str) -> None:
        while (running := self._running_of(task_id)) is not None:
            await asyncio.wait([running])
        if not self._suspended.is_due(task_id):
            return  # The run that just ended has handled it.
        row = await self._journal.task(task_id)
        if row is None or row.state is not TaskState.INPUT_REQUIRED:
            await self.look()
        else:
            await self._take_up(row)

    async def _waits_for_us(self, task_id: str) -> bool:
        """Return whether the task runs here, or waits with the questions that this process asked."""
        row = await self._journal.task(task_id)
        if self._running_of(task_id) is not None or (row is not None and row.is_queued):
            return True  # or is about to: it waits for this process
        if row is None or row.state is not TaskState.INPUT_REQUIRED:
            return False
        waiting = {call.tool_call_id for call in row.pending}
        return waiting.issuperset(self._suspended.questions(task_id))
