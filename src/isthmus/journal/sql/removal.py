"""Removal of tasks from a journal in an SQL database. :class:`isthmus.journal.port.base.Removal` documents each step.

A marked task keeps its row, under an id and a state that no query finds, so that its key is not reused while its
events are removed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from isthmus.events import TaskState
from isthmus.journal.port.base import Removal
from isthmus.journal.port.removed_tokens import USED, Used
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.sql.reads import RowReader
from isthmus.journal.sql.rows import COLUMNS, DELETED, SqlDialect, row_from

MARK = DELETED + " "
"""Prefix of a marked task's id."""
ENDED = tuple(state for state in TaskState if state.is_terminal)
WAITING = tuple(state for state in TaskState if state.is_waiting)
_OTHERS = tuple(state for state in TaskState if not state.is_terminal)


class SqlRemoval(Removal):
    """The queries of a :class:`~isthmus.journal.port.base.Removal`."""

    def __init__(self, read: RowReader, dialect: SqlDialect) -> None:
        self._read = read
        self._dialect = dialect

    @override
    async def marked(self) -> Sequence[str]:
        query = "SELECT substr(id, ?) FROM tasks WHERE state = ? ORDER BY key"
        return await self._read(query, (len(MARK) + 1, DELETED), lambda values: str(values[0]))

    @override
    async def used(self, user: str, begun: int) -> Mapping[str, Used]:
        def row(values: Sequence[Any]) -> tuple[str, Used]:
            return str(values[0]), Used(int(values[1]), int(values[2]))

        return dict(await self._read(USED, (user, begun), row))

    @override
    async def ended(
        self, limit: int, *, newest: int = 0, until: float | None = None, user: str | None = None
    ) -> Sequence[TaskRow]:
        ended, others = (", ".join("?" * len(states)) for states in (ENDED, _OTHERS))
        but, kept = ("", ())
        if newest:
            last = f"SELECT key FROM tasks WHERE state IN ({ended}) ORDER BY updated DESC, key DESC LIMIT ?"
            but = f" AND key NOT IN ({last})"
            kept = (*ENDED, newest)
        values = (*ENDED, *kept, until, until, user, user, *_OTHERS, limit)
        # Not by the index of states: ordered by change, the first rows are found at once.
        return await self._read(
            f"SELECT {COLUMNS} FROM tasks WHERE {self._dialect.unindexed}state IN ({ended}){but}"
            ' AND (CAST(? AS double precision) IS NULL OR updated <= ?) AND (CAST(? AS text) IS NULL OR "user" = ?)'
            " AND NOT EXISTS"
            ' (SELECT 1 FROM tasks AS other WHERE other.context = tasks.context AND other."user" = tasks."user"'
            f" AND other.state IN ({others})) ORDER BY updated, key LIMIT ?",
            values,
            row_from,
        )
