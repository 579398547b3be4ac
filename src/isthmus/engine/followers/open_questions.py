"""The questions that are open now, for surfaces other than the client that asked, such as an editor that shows edits.

A surface reads :meth:`OpenQuestions.changes` and answers like any other client.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import field
from typing import TypeAlias

from isthmus.development_tool import AgentSettings, ToolCall
from isthmus.record import record


@record
class QuestionOpened:
    """A tool call that has begun to wait for a user."""

    task_id: str
    context_id: str
    workspace: str
    tool_call: ToolCall
    user: str = ""
    """The task's user; empty for the local user."""
    settings: AgentSettings | None = field(default=None, compare=False)
    """The settings of the session; None when they were not looked up."""


@record
class QuestionClosed:
    """A tool call that is no longer waiting: it was answered, or the task continued without it."""

    task_id: str
    tool_call_id: str
    answered_by: str = ""
    """The surface or user that answered; empty if nobody did."""


QuestionChange: TypeAlias = QuestionOpened | QuestionClosed


class OpenQuestions:
    """All questions of this engine's tasks that are waiting for a user."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], QuestionOpened] = {}
        self._readers: set[asyncio.Queue[QuestionChange]] = set()

    def waiting(
        self,
        task_id: str,
        context_id: str,
        workspace: str,
        calls: Sequence[ToolCall],
        *,
        user: str = "",
        settings: AgentSettings | None = None,
    ) -> None:
        """Record that exactly these calls of a task are waiting."""
        for _, key in self._of(task_id):
            if all(call.tool_call_id != key for call in calls):
                self.closed(task_id, key)
        for call in calls:
            question = QuestionOpened(task_id, context_id, workspace, call, user, settings)
            if self._open.get(key := (task_id, call.tool_call_id)) != question:
                self._open[key] = question
                self._tell(question)

    def closed(self, task_id: str, call_id: str | None = None, answered_by: str = "") -> None:
        """Record that a call of a task, or all its calls, are no longer waiting; ``answered_by`` may be empty."""
        for key in self._of(task_id):
            if call_id is None or key[1] == call_id:
                del self._open[key]
                self._tell(QuestionClosed(*key, answered_by))

    async def changes(self) -> AsyncGenerator[QuestionChange, None]:
        """Yield the questions that are open now, then every change."""
        queue: asyncio.Queue[QuestionChange] = asyncio.Queue()
        self._readers.add(queue)
        try:
            for question in list(self._open.values()):
                yield question
            while True:
                yield await queue.get()
        finally:
            self._readers.discard(queue)

    def _of(self, task_id: str) -> Sequence[tuple[str, str]]:
        return [key for key in self._open if key[0] == task_id]

    def _tell(self, change: QuestionChange) -> None:
        for queue in self._readers:
            queue.put_nowait(change)
