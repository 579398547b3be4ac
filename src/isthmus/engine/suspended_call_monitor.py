"""Looks after the calls that wait in this process in the middle of their work, as their tasks go on without them.

A task whose question was taken back, or not answered in time, is taken up again; the calls of one that was cancelled,
or that another process has taken, are ended. A question whose process has ended is lost with the call that asked it,
which is found out here. Deliberately not here: the calls (:mod:`isthmus.agent.calls.suspended_calls`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.session import QUESTION_MARK
from isthmus.engine.lease_owner import is_gone
from isthmus.events import TaskState, ToolCallUpdate
from isthmus.journal.base import Journal, TaskRow

LATEST_EVENTS = 1000
"""Maximum number of a task's events that are searched for the process that asked."""

log = logging.getLogger(__name__)

RunningOf: TypeAlias = Callable[[str], "asyncio.Task[None] | None"]
"""Returns the asyncio task that works on a task in this process."""
TakeUp: TypeAlias = Callable[[TaskRow], Awaitable[object]]
"""Takes a task at rest and runs it, unless somebody was faster."""


class SuspendedCallMonitor:
    """The upkeep of the suspended calls of one process."""

    def __init__(self, suspended: SuspendedCalls, journal: Journal, running_of: RunningOf, take_up: TakeUp) -> None:
        self._suspended = suspended
        self._journal = journal
        self._running_of = running_of
        self._take_up = take_up
        self._work: set[asyncio.Task[None]] = set()
        suspended.on_due = self._due

    async def is_lost(self, row: TaskRow) -> bool:
        """Return whether a waiting task's answer could reach nobody, because the asking process has ended.

        False when that process may be on another machine.
        """
        waiting = {call.tool_call_id for call in row.pending if QUESTION_MARK in call.tool_call_id}
        if not waiting or self._suspended.holds(row.task_id):
            return False
        events = await self._journal.events(row.task_id, max(0, row.seq - LATEST_EVENTS), LATEST_EVENTS)
        updates = [item.event for item in events if isinstance(item.event, ToolCallUpdate)]
        askers = {item.tool_call.tool_call_id: item.asked_in for item in updates}
        return any(asker is not None and is_gone(asker) for call, asker in askers.items() if call in waiting)

    def ended(self, task_id: str) -> None:
        """End in the background what a task left that does not wait any more."""
        if self._suspended.holds(task_id):
            self._begin(self._suspended.discard(task_id))

    async def look(self) -> None:
        """End the calls of tasks that went on elsewhere, or are gone; go on with what could not be taken up before."""
        for task_id in self._suspended.task_ids:
            if self._running_of(task_id) is not None:
                continue
            if not await self._waits_for_us(task_id):
                await self._suspended.discard(task_id)
            elif self._suspended.is_due(task_id):
                self._due(task_id)

    async def stop(self) -> None:
        """Take up no task any more."""
        self._suspended.on_due = None
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    async def aclose(self) -> None:
        """End every call that waits here."""
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
            log.error("calls that wait could not be looked after", exc_info=error)

    async def _go_on(self, task_id: str) -> None:
        while (running := self._running_of(task_id)) is not None:
            await asyncio.wait([running])
        if not self._suspended.is_due(task_id):
            return  # What ran has seen to it.
        row = await self._journal.task(task_id)
        if row is None or row.state is not TaskState.INPUT_REQUIRED:
            await self.look()
        else:
            await self._take_up(row)

    async def _waits_for_us(self, task_id: str) -> bool:
        """Return whether the task is at rest with the questions that are asked here."""
        row = await self._journal.task(task_id)
        if self._running_of(task_id) is not None:
            return True
        if row is None or row.state is not TaskState.INPUT_REQUIRED:
            return False
        waiting = {call.tool_call_id for call in row.pending}
        return waiting.issuperset(self._suspended.questions(task_id))
