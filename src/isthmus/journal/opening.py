"""Opens an agent's journal: a file of its data folder, or a database."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.journal.base import Journal


async def open_journal(file: Path, url: str = "", agent: Sequence[str] = ()) -> "Journal":
    """Open the journal in the database ``url``, or in ``file`` if that is empty.

    ``agent`` is the name of the agent that runs its tasks, then its former names.

    Raises:
        JournalError: it cannot be used; it is unchanged.
    """
    if url:
        from isthmus.journal.postgres import PostgresJournal

        return await PostgresJournal.open(url, agent=agent)
    from isthmus.journal.sqlite import SqliteJournal

    return await SqliteJournal.open(file, agent=agent)
