"""Keeps tasks and the tasks of their subagents in step, in whichever processes they run.

A task that waits for a question of its subagent goes on once that was answered in the subagent's own task. When a task
ends, the tasks of its subagents are cancelled. Nothing about it is only in memory: what a process that ended has missed
is made good at the next start. Not here: creating and following them, see :mod:`isthmus.engine.child_tasks`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from isthmus.agent.calls.relayed_questions import asked_id
from isthmus.agent.subagents.child_tasks import child_task_id
from isthmus.client import TaskNotCancelable, TaskNotFound
from isthmus.development_tool import ToolCall
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow
from isthmus.questions import QUESTION_MARK

log = logging.getLogger(__name__)

TakeUp: TypeAlias = Callable[[TaskRow], Awaitable[object]]
"""Claims a task at rest and runs it, unless another claim came first."""
Cancel: TypeAlias = Callable[[str], Awaitable[None]]
"""Cancels a task wherever it runs; raises TaskNotCancelable or TaskNotFound."""


class ChildMonitor:
    """Upkeep of the tasks of subagents, and of the tasks that began them, for one process."""

    def __init__(self, journal: Journal, take_up: TakeUp, cancel: Cancel) -> None:
        self._journal = journal
        self._take_up = take_up
        self._cancel = cancel
        self._parents: set[str] = set()
        """Tasks that have begun others, as far as this process knows."""
        self._work: set[asyncio.Task[None]] = set()

    @property
    def work(self) -> Sequence[asyncio.Task[None]]:
        """Work in the background that is under way."""
        return tuple(self._work)

    def noted(self, row: TaskRow) -> None:
        """Note that a task exists which another one may have begun."""
        if row.parent:
            self._parents.add(row.parent)

    def own_questions(self, task_id: str, waiting: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Return the waiting calls of a task without those that it asks for a subagent, whose own task has them too."""
        if task_id not in self._parents:
            return waiting
        return [call for call in waiting if QUESTION_MARK not in call.tool_call_id]

    def changed(self, row: TaskRow, *, has_ended: bool = False) -> None:
        """Look after the relatives of a task whose work begins here, comes to rest, or with ``has_ended`` has ended."""
        self.noted(row)
        if row.parent:
            self._begin(self._look_at_parent(row.parent, row.task_id))
        if row.task_id in self._parents:
            if has_ended:
                self._parents.discard(row.task_id)
                self._begin(self.cancel_children(row.task_id))
            else:
                self._begin(self._look_at(row.task_id))

    async def look(self, row: TaskRow) -> bool:
        """Make good what an ended process has missed for a task; return whether the task changes by it."""
        self.noted(row)
        if row.parent:
            parent = await self._journal.task(row.parent)
            if parent is None or parent.state.is_terminal:
                await self._cancel_quietly(row.task_id)
                return True
        return row.state.is_waiting and await self._go_on(row)

    async def cancel_children(self, task_id: str) -> None:
        """Cancel the tasks that a task has begun and that have not ended."""
        for child in await self._journal.children(task_id):
            if not child.state.is_terminal:
                await self._cancel_quietly(child.task_id)

    async def stop(self) -> None:
        """End the work in the background; the next start makes it good."""
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    async def _look_at_parent(self, parent_id: str, child_id: str) -> None:
        parent = await self._journal.task(parent_id)
        if parent is None or parent.state.is_terminal:
            await self._cancel_quietly(child_id)
        elif parent.state.is_waiting:
            await self._go_on(parent)

    async def _look_at(self, task_id: str) -> None:
        row = await self._journal.task(task_id)
        if row is not None and row.state.is_waiting:
            await self._go_on(row)

    async def _go_on(self, row: TaskRow) -> bool:
        """Resume a waiting task if one of its subagents does not ask any more what the task asks for it."""
        relayed = [call for call in row.pending if QUESTION_MARK in call.tool_call_id]
        if not relayed or await self._are_asked(row.task_id, relayed):
            return False
        await self._take_up(row)
        return True

    async def _are_asked(self, task_id: str, relayed: Sequence[ToolCall]) -> bool:
        children = await self._journal.children(task_id)
        rows = {child.task_id: child for child in children}
        for call in relayed:
            asker = call.tool_call_id.rpartition(QUESTION_MARK)[0]
            if (child := rows.get(child_task_id(task_id, asker))) is not None:
                waiting = {item.tool_call_id for item in child.pending} if child.state.is_waiting else set[str]()
                if asked_id(call.tool_call_id) not in waiting:
                    return False
        return True

    async def _cancel_quietly(self, task_id: str) -> None:
        with contextlib.suppress(TaskNotCancelable, TaskNotFound):
            await self._cancel(task_id)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="isthmus-children")
        self._work.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._work.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a subagent's task, or the one that began it, could not be resumed or ended", exc_info=error)
