"""Facts from a journal about tasks with questions that devices were told of."""

from typing import Protocol

from typing_extensions import override

from isthmus.events import ConfirmationAccepted
from isthmus.journal.port.base import Journal
from isthmus.web.push.sent_questions import AnswerRecord

LATEST_EVENTS = 1000
"""Maximum number of a task's latest events among which an answer is sought."""


class TaskFacts(Protocol):
    """Facts about the tasks of all users.

    Raises:
        IsthmusError: the journal cannot be read, by each of the methods.
    """

    async def title(self, task_id: str) -> str:
        """Return the title of the task's session; empty if there is none."""
        ...

    async def waits(self, task_id: str, call_id: str) -> bool:
        """Return whether a call of a task waits for its user."""
        ...

    async def outcome(self, task_id: str, call_id: str) -> AnswerRecord | None:
        """Return who answered a call, and when; None if that is not known."""
        ...


class JournalTaskFacts(TaskFacts):
    """Facts from a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @override
    async def title(self, task_id: str) -> str:
        row = await self._journal.task(task_id)
        session = None if row is None else await self._journal.sessions.session(row.context_id, row.user)
        return "" if session is None else session.title

    @override
    async def waits(self, task_id: str, call_id: str) -> bool:
        row = await self._journal.task(task_id)
        return row is not None and any(call.tool_call_id == call_id for call in row.pending)

    @override
    async def outcome(self, task_id: str, call_id: str) -> AnswerRecord | None:
        row = await self._journal.task(task_id)
        if row is None:
            return None
        for delivery in reversed(await self._journal.events(task_id, max(0, row.seq - LATEST_EVENTS), LATEST_EVENTS)):
            event = delivery.event
            if isinstance(event, ConfirmationAccepted) and event.confirmation.tool_call_id == call_id:
                return AnswerRecord(event.answered_by, delivery.at)
        return None
