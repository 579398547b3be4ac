"""Sessions read from the journal: the conversation of a task, as the next run of it continues."""

from isthmus.agent.session.session import Session
from isthmus.encoding.codec import JsonObject
from isthmus.engine.runs.torn_text import torn_text
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import TaskRow


class Sessions:
    """The sessions of a journal. Each method reads a whole session."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def fold(self, row: TaskRow, session: Session) -> Session:
        """Return the conversation as this task continues it: the messages of the other tasks come first."""
        kept = await self._journal.session(row.context_id, row.user)
        for of_task, delivery in sorted(kept, key=lambda item: item[0] == row.task_id):
            session.apply(delivery.event, of_task, delivery.at)
        return session

    async def resume(self, row: TaskRow, session: Session) -> Session:
        """Return the same with the text that was under way when the work on the task broke off."""
        session = await self.fold(row, session)
        session.torn_text = await torn_text(self._journal, row.task_id, row.seq)
        return session

    async def model_of(self, context_id: str, user: str, settings: JsonObject | None) -> str | None:
        """Return the model of a message with these settings, None for the agent's own."""
        session = Session(context_id)
        for task_id, delivery in await self._journal.session(context_id, user):
            session.apply(delivery.event, task_id, delivery.at)
        named = (settings or {}).get("model", session.choices.model)
        return named if isinstance(named, str) and named.strip() else None
