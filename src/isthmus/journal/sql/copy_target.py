"""Port to an empty journal that is being filled with a copy of another one."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from isthmus.journal.sql.rows import DELETED
from isthmus.journal.sql.tables import StoredTable
from isthmus.record import record

OnProgress: TypeAlias = Callable[[int, int], None]
"""Function that takes how much of a copy is done, and of how much: events, or pages of a file."""

COUNTS = f"SELECT count(*), coalesce(sum(seq), 0) FROM tasks WHERE state <> '{DELETED}'"
"""Query for the numbers of tasks and of their events, without those that are being removed."""


@record
class Copied:
    """A finished copy: the numbers of tasks and of their events, without those that are being removed.

    ``replaced`` is the number of texts with characters that the new place cannot hold.
    """

    tasks: int
    events: int
    replaced: int = 0


class Target(Protocol):
    """An empty journal that is being filled. It is complete after :meth:`finish`; otherwise nothing is left of it."""

    async def write(self, table: StoredTable, rows: Sequence[Sequence[Any]]) -> int:
        """Add rows; return the number of texts with characters that had to be replaced."""
        ...

    async def finish(self, *, started: int) -> None:
        """Complete the copy; ``started`` is the start tag of the task that left the queue last."""
        ...
