"""The running calls that wait for a person's word in the middle of their work, in the memory of one process.

A call that asks is set aside with its generator, and its task ends its segment as for every question; when the answer
is there, the next segment takes the call up again. What is here ends with its process: then the call was interrupted.
A question that nobody answers in time, or that its asker takes back, makes its task *due*: it is to go on without an
answer. Deliberately not here: what is asked, and who goes on with a task.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from isthmus.development_tool import ToolCall
from isthmus.tools.asking import AskPerson
from isthmus.tools.base import ToolItem

log = logging.getLogger(__name__)

ANSWER_SECONDS = 600.0
"""How long an answer is waited for; then the call goes on without."""
CLOSE_SECONDS = 5.0
"""How long a call may take to end when it is given up."""


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call under way: its last announced state, what its tool yields, and the checkpoint taken for it, if any."""

    call: ToolCall
    items: AsyncGenerator[ToolItem, None]
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class ParkedCall:
    """A running call that has asked; ``question_id`` is the tool call id of its question."""

    running: RunningCall
    ask: AskPerson
    question_id: str


@dataclass(slots=True)
class _Task:
    """What is set aside of one task."""

    calls: dict[str, ParkedCall] = field(default_factory=dict[str, ParkedCall])
    timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict[str, asyncio.TimerHandle])
    at_end: Callable[[], Awaitable[None]] | None = None


class ParkedCalls:
    """All running calls that wait in this process. ``on_due`` is told the id of each task that comes to be due."""

    def __init__(self, seconds: float = ANSWER_SECONDS) -> None:
        self.seconds = seconds
        self.process: str | None = None
        """Names this process, for others to see whether it still lives."""
        self.on_due: Callable[[str], None] | None = None
        self._tasks: dict[str, _Task] = {}

    @property
    def task_ids(self) -> Sequence[str]:
        """The tasks of which something waits here."""
        return tuple(self._tasks)

    def park(self, task_id: str, parked: ParkedCall) -> None:
        """Set a call aside until its question is answered."""
        task = self._tasks.setdefault(task_id, _Task())
        call_id = parked.running.call.tool_call_id
        task.calls[call_id] = parked
        late = f"Nobody answered within {self.seconds:g} s"
        task.timers[call_id] = asyncio.get_running_loop().call_later(self.seconds, parked.ask.withdraw, late)
        parked.ask.on_withdrawn = lambda: self._due(task_id)
        if not parked.ask.is_open:
            self._due(task_id)

    def find(self, task_id: str, call_id: str) -> ParkedCall | None:
        """A call that waits here."""
        task = self._tasks.get(task_id)
        return task.calls.get(call_id) if task is not None else None

    def take(self, task_id: str, call_id: str) -> ParkedCall | None:
        """A call that waits here, to go on with it: whoever takes it closes its generator."""
        task = self._tasks.get(task_id)
        if task is None or (parked := task.calls.pop(call_id, None)) is None:
            return None
        task.timers.pop(call_id).cancel()
        parked.ask.on_withdrawn = None
        if not task.calls and task.at_end is None:
            del self._tasks[task_id]
        return parked

    def holds(self, task_id: str) -> bool:
        """Whether a call of the task waits here."""
        task = self._tasks.get(task_id)
        return task is not None and bool(task.calls)

    def is_due(self, task_id: str) -> bool:
        """Whether the task can go on although nobody has answered."""
        task = self._tasks.get(task_id)
        return task is not None and any(not parked.ask.is_open for parked in task.calls.values())

    def questions(self, task_id: str) -> Sequence[str]:
        """The tool call ids of the task's questions."""
        task = self._tasks.get(task_id)
        return () if task is None else [parked.question_id for parked in task.calls.values()]

    async def end_segment(self, task_id: str, release: Callable[[], Awaitable[None]]) -> None:
        """Release what the task's segment used: now, or when none of its calls waits here any more."""
        if self.holds(task_id):
            self._tasks[task_id].at_end = release
            return
        self._tasks.pop(task_id, None)
        await release()

    async def discard(self, task_id: str, call_id: str | None = None) -> None:
        """End a task's calls: each is cancelled wherever it runs. One of them alone ends within a segment of its task,
        which releases what it used itself."""
        task = self._tasks.get(task_id)
        if task is None:
            return
        for found in [call_id] if call_id is not None else list(task.calls):
            if (parked := self.take(task_id, found)) is not None:
                await _close(parked)
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


async def _close(parked: ParkedCall) -> None:
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await parked.running.items.aclose()
    except Exception:  # of a tool, whose call is over
        log.exception("the call %s did not end well", parked.running.call.tool_call_id)
    finally:
        # Not before: whoever asked must hear of the end of the call, not of an answer.
        parked.ask.withdraw("The call was cancelled")
