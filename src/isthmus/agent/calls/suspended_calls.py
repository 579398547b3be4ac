"""The running calls that wait for an answer of the user, in the memory of one process.

A call that asks is suspended, and its task ends its segment as for every question; when the answer is there, the next
segment resumes the call. A suspended call ends with its process and counts as interrupted. When a question is not
answered in time, or is withdrawn, its task becomes *due*: it goes on without an answer.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from isthmus.agent.calls.running_call import OpenQuestion, RunningCall
from isthmus.record import record

ANSWER_SECONDS = 600.0
"""Maximum wait in seconds for an answer; then the call goes on without one."""
CLOSE_SECONDS = 5.0
"""Maximum time in seconds in which an abandoned call ends."""


@record
class SuspendedCall:
    """A running call that has asked; ``question_id`` is the tool call id of its question."""

    running: RunningCall
    question: OpenQuestion
    question_id: str


@dataclass(slots=True)
class _Task:
    """The suspended calls of one task."""

    calls: dict[str, SuspendedCall] = field(default_factory=dict[str, SuspendedCall])
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict[str, asyncio.TimerHandle])
    at_end: Callable[[], Awaitable[None]] | None = None


class SuspendedCalls:
    """The running calls that wait in this process. ``on_due`` gets the id of each task that becomes due."""

    def __init__(self, seconds: float = ANSWER_SECONDS, *, asks_only_here: bool = False) -> None:
        self.seconds = seconds
        self.asks_only_here = asks_only_here
        """Whether every question of the agent is that of a suspended call, whatever its id."""
        self.process: str | None = None
        """Name of this process, by which others see whether it is alive."""
        self.on_due: Callable[[str], None] | None = None
        self._tasks: dict[str, _Task] = {}

    @property
    def task_ids(self) -> Sequence[str]:
        """The ids of the tasks whose calls wait here."""
        return tuple(self._tasks)

    def suspend(self, task_id: str, suspended: SuspendedCall) -> None:
        """Keep a call until its question is answered."""
        task = self._tasks.setdefault(task_id, _Task())
        call_id = suspended.running.call.tool_call_id
        task.calls[call_id] = suspended
        late = f"Nobody answered within {self.seconds:g} s"
        task.timers[call_id] = asyncio.get_running_loop().call_later(self.seconds, suspended.question.withdraw, late)
        suspended.question.on_withdrawn = lambda: self._due(task_id)
        if not suspended.question.is_open:
            self._due(task_id)

    def find(self, task_id: str, call_id: str) -> SuspendedCall | None:
        """Return a call that waits here."""
        task = self._tasks.get(task_id)
        return task.calls.get(call_id) if task is not None else None

    def take(self, task_id: str, call_id: str) -> SuspendedCall | None:
        """Remove and return a call that waits here, to go on with it. The caller must stop it in the end."""
        task = self._tasks.get(task_id)
        if task is None or (suspended := task.calls.pop(call_id, None)) is None:
            return None
        task.timers.pop(call_id).cancel()
        suspended.question.on_withdrawn = None
        if not task.calls and task.at_end is None:
            del self._tasks[task_id]
        return suspended

    def holds(self, task_id: str) -> bool:
        """Return whether a call of the task waits here."""
        task = self._tasks.get(task_id)
        return task is not None and bool(task.calls)

    def is_due(self, task_id: str) -> bool:
        """Return whether the task can go on without an answer."""
        task = self._tasks.get(task_id)
        return task is not None and any(not suspended.question.is_open for suspended in task.calls.values())

    def questions(self, task_id: str) -> Sequence[str]:
        """Return the tool call ids of the task's questions."""
        task = self._tasks.get(task_id)
        return () if task is None else [suspended.question_id for suspended in task.calls.values()]

    async def end_segment(self, task_id: str, release: Callable[[], Awaitable[None]]) -> None:
        """Release the resources of the task's segment: now, or once none of its calls waits here."""
        if self.holds(task_id):
            self._tasks[task_id].at_end = release
            return
        self._tasks.pop(task_id, None)
        await release()

    async def discard(self, task_id: str, call_id: str | None = None) -> None:
        """Cancel a task's calls, or one of them, wherever they run.

        One call alone ends within a segment of its task, which releases its resources itself.
        """
        task = self._tasks.get(task_id)
        if task is None:
            return
        for found in [call_id] if call_id is not None else list(task.calls):
            if (suspended := self.take(task_id, found)) is not None:
                await _close(suspended)
        if call_id is None and task.at_end is not None:
            at_end, task.at_end = task.at_end, None
            self._tasks.pop(task_id, None)
            await at_end()

    async def aclose(self) -> None:
        """End every call that waits here, at the end of the process."""
        self.on_due = None
        await asyncio.gather(*(self.discard(task_id) for task_id in self.task_ids), return_exceptions=True)

    def _due(self, task_id: str) -> None:
        if self.on_due is not None:
            self.on_due(task_id)


async def _close(suspended: SuspendedCall) -> None:
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await suspended.running.stop()
    finally:
        # Not earlier: the tool must see that its call ended, not an answer.
        suspended.question.withdraw("The call was cancelled")
