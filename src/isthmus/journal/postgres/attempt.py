"""One attempt to commit writes of a journal in PostgreSQL, in one transaction."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from isthmus.journal.port.notices import JournalNotice
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.statements import read_facts, store
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sql.write_facts import Needs, NewEvent
from isthmus.journal.sql.write_group import WriteGroup, after_failure


class WriteAttempt:
    """One attempt at the time ``now``, in Unix seconds of the journal's clock."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.outcomes: list[Any] = []
        """Result or error of each write."""
        self.probe: NewEvent | None = None
        """The event that is stored if the group is committed."""

    async def call(self, connection: Connection, work: Callable[[Connection, float], Awaitable[Any]]) -> None:
        """Commit what a function writes."""
        async with connection.transaction():
            outcome = await work(connection, self._now)
        self.outcomes = [outcome]

    async def write(
        self,
        connection: Connection,
        writes: Sequence[tuple[TaskWrite, bool]],
        text_of: Callable[[JournalNotice], str | None],
    ) -> None:
        """Commit writes, each with whether an earlier one of its task has failed."""
        async with connection.transaction():
            facts = await read_facts(connection, Needs(write for write, _ in writes))
            group = WriteGroup(facts, self._now)
            self.outcomes = group.results(after_failure() if is_broken else write for write, is_broken in writes)
            self.probe = group.events[0] if group.events else None
            await store(connection, group, text_of(group.notice))
