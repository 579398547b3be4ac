"""Port to a journal as it was at one moment, which is read whole, in batches, while others go on writing to it."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.processes import Process
from isthmus.journal.sql.tables import StoredTable

BATCH_ROWS = 1000
"""Maximum number of rows of a batch."""
BATCH_CHARACTERS = 4 * 1024 * 1024
"""Maximum size of a batch in characters or bytes; a single row may be larger."""


class Snapshot(Protocol):
    """One view of a journal. Nothing is written, nothing is upgraded. All methods raise :class:`JournalError`."""

    name: str
    """Place of the journal, without a password."""
    version: int
    """Version of its tables."""
    newest: int
    """Version of the tables that this program makes."""

    async def read(self, query: str) -> Sequence[Sequence[Any]]:
        """Return all rows of a query that both databases take."""
        ...

    def rows(self, table: StoredTable) -> AsyncIterator[Sequence[Sequence[Any]]]:
        """Yield the rows of a table in batches, ordered by its key."""
        ...

    async def has(self, table: str) -> bool:
        """Return whether there is a table of this name: those of newer versions may not be there."""
        ...

    async def agent(self) -> str | None:
        """Return the name of the agent that runs its tasks, if one has."""
        ...

    async def size(self) -> int:
        """Return the size of the journal's files in bytes, with its indexes and free pages."""
        ...

    async def processes(self) -> Sequence[Process]:
        """Return the processes that work with the journal now, and others that hold its tasks."""
        ...

    async def damage(self) -> Sequence[str]:
        """Return what the database itself finds damaged, in words; reads everything."""
        ...


def check_current(snapshot: Snapshot) -> None:
    """Check that a journal's tables are those of this program.

    Raises:
        JournalError: they are older.
    """
    if snapshot.version < snapshot.newest:
        raise JournalError(
            f"{snapshot.name} has journal version {snapshot.version}, and this program works with"
            f" {snapshot.newest}. Upgrade it first: isthmus journal migrate"
        )


def newer(name: str, version: int, newest: int) -> JournalError:
    """Return the error for a journal that a newer program has written."""
    return JournalError(
        f"{name} was written by a newer Isthmus (journal version {version}, this one knows {newest}). Upgrade Isthmus."
    )
