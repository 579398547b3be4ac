"""The questions that wait now, for surfaces besides the client that asked: an editor that can show an edit, say.

A surface reads :meth:`QuestionBoard.changes` and answers like any other client.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from isthmus.events import ToolCall


@dataclass(frozen=True, slots=True)
class QuestionOpened:
    """A tool call waits for a person."""

    task_id: str
    context_id: str
    workspace: str
    tool_call: ToolCall


@dataclass(frozen=True, slots=True)
class QuestionsClosed:
    """The questions of a task are no longer open as they were: one was answered, or the task was cancelled.

    Those that stay open are opened again when the task waits again.
    """

    task_id: str


QuestionChange: TypeAlias = QuestionOpened | QuestionsClosed


class QuestionBoard:
    """All open questions of this engine."""

    def __init__(self) -> None:
        self._open: dict[str, list[QuestionOpened]] = {}
        self._readers: set[asyncio.Queue[QuestionChange]] = set()

    def opened(self, task_id: str, context_id: str, workspace: str, calls: Sequence[ToolCall]) -> None:
        """A task waits with these calls."""
        self._open[task_id] = [QuestionOpened(task_id, context_id, workspace, call) for call in calls]
        for question in self._open[task_id]:
            self._tell(question)

    def closed(self, task_id: str) -> None:
        """A task does not wait any more."""
        if self._open.pop(task_id, None) is not None:
            self._tell(QuestionsClosed(task_id))

    async def changes(self) -> AsyncIterator[QuestionChange]:
        """What is open now, then every change."""
        queue: asyncio.Queue[QuestionChange] = asyncio.Queue()
        self._readers.add(queue)
        try:
            for questions in list(self._open.values()):
                for question in questions:
                    yield question
            while True:
                yield await queue.get()
        finally:
            self._readers.discard(queue)

    def _tell(self, change: QuestionChange) -> None:
        for queue in self._readers:
            queue.put_nowait(change)
