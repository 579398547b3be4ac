"""Tasks as clients see them, read from the journal: their rows, last messages and model.

Not here: the rights of users, see :mod:`isthmus.engine.users.user_tasks`.
"""

from collections.abc import Callable

from isthmus.client import HistoryMessage, TaskSnapshot
from isthmus.engine.requests.asking import history_of
from isthmus.internal_events import ModelReply
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow

HISTORY_MESSAGES = 50
"""Default number of messages in a snapshot."""


class Snapshots:
    """Snapshots of the tasks in a journal. ``model_name`` returns the model of tasks that have not used one yet."""

    def __init__(self, journal: Journal, model_name: Callable[[], str]) -> None:
        self._journal = journal
        self._model_name = model_name

    def of(self, row: TaskRow, history: tuple[HistoryMessage, ...] = ()) -> TaskSnapshot:
        """Return the task of a row, without artifacts."""
        return TaskSnapshot(
            row.task_id,
            row.context_id,
            row.state,
            row.seq,
            row.workspace,
            row.created_at,
            row.updated_at,
            title=row.title,
            model=self._model_name(),
            error=row.error,
            reason=row.reason,
            pending=row.pending,
            history=history,
            parent=row.parent,
            is_interrupted=row.is_interrupted,
        )

    async def history(self, task_id: str, limit: int) -> tuple[HistoryMessage, ...]:
        """Return the last `limit` messages.

        Reads backwards until it has enough: a reply of the model with only tool calls is not a message.
        """
        messages: tuple[HistoryMessage, ...] = ()
        rows, before = limit, None
        while len(messages) < limit:
            found = await self._journal.messages(task_id, rows, before)
            messages = (*history_of(found), *messages)
            if len(found) < rows:
                break
            rows, before = HISTORY_MESSAGES, found[0].seq
        return messages[-limit:] if limit else ()

    async def model_at(self, task_id: str, seq: int) -> str:
        """Return the model that was in use after event ``seq``.

        So a client that follows from ``seq`` later receives the same as one that followed live.
        """
        for delivery in reversed(await self._journal.messages(task_id, 3, seq + 1)):
            if isinstance(delivery.event, ModelReply) and delivery.event.model:
                return delivery.event.model
        return self._model_name()
