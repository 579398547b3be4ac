"""A journal whose rows are handed out one write late, as to a reader who is overtaken by another process."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, cast

from isthmus.events import AgentEvent, TaskState
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import ClaimedTask, TaskRow


class LateRows:
    """A journal that writes like another one, and reads each task's row and inbox as they were a write ago.

    When a row has changed since it was handed out last, the former one is handed out once more, and the new one at the
    next read. So every decision is made once with a fact that was true before. All other methods are the journal's own.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rows: dict[str, TaskRow] = {}
        self._inboxes: dict[tuple[str, type[AgentEvent]], Sequence[AgentEvent]] = {}
        self.late = 0
        """Number of old facts that were handed out."""

    @property
    def as_journal(self) -> Journal:
        """This, as the port that it stands for."""
        return cast("Journal", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def create(self, *values: Any, **named: Any) -> "Awaitable[ClaimedTask]":
        """Add a task, whose first row is known from now on."""
        created = asyncio.ensure_future(self._journal.create(*values, **named))
        created.add_done_callback(self._note)
        return created

    def _note(self, created: "asyncio.Future[ClaimedTask]") -> None:
        if not created.cancelled() and created.exception() is None:
            row = created.result().row
            self._rows.setdefault(row.task_id, row)

    async def task(self, task_id: str) -> TaskRow | None:
        """Return the former row once after each change."""
        row = await self._journal.task(task_id)
        return row if row is None else self._late(row)

    async def tasks(self, limit: int, states: Sequence[TaskState] = (), user: str | None = None) -> Sequence[TaskRow]:
        """Return the former rows once after each change."""
        return [self._late(row) for row in await self._journal.tasks(limit, states, user)]

    async def children(self, task_id: str) -> Sequence[TaskRow]:
        """Return the former rows of a task's children once after each change."""
        return [self._late(row) for row in await self._journal.children(task_id)]

    async def waiting(self, task_id: str, kind: type[AgentEvent]) -> Sequence[AgentEvent]:
        """Return the former events in the inbox once after each change."""
        found = await self._journal.waiting(task_id, kind)
        before = self._inboxes.get((task_id, kind), ())
        self._inboxes[task_id, kind] = found
        self.late += list(before) != list(found)
        return before

    def _late(self, row: TaskRow) -> TaskRow:
        before = self._rows.get(row.task_id, row)
        self._rows[row.task_id] = row
        self.late += before != row
        return before
