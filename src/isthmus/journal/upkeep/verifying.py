"""Checks of a whole journal: every row is read once, by tasks.

:mod:`isthmus.journal.upkeep.task_check` checks one task.
"""

import json
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from isthmus.encoding.json_shapes import as_list
from isthmus.errors import DecodeError
from isthmus.journal.opening import snapshot_of
from isthmus.journal.place import JournalPlace
from isthmus.journal.port.base import JournalError
from isthmus.journal.sql.snapshot import Snapshot, check_current
from isthmus.journal.sql.tables import CHATS, EVENTS, INBOX, MESSAGES, PUSHES, TASKS, StoredTable
from isthmus.journal.upkeep.copying import started_tag
from isthmus.journal.upkeep.task_check import TaskCheck
from isthmus.record import record

Row = Sequence[Any]


@record
class Problem:
    """Something that is wrong in a journal; ``task_id`` is empty if it is not about one task."""

    task_id: str
    text: str


@record
class Verified:
    """The numbers of rows that were read, by table, and their size in characters."""

    rows: Mapping[str, int]
    characters: int


OnProblem = Callable[[Problem], None]
OnProgress = Callable[[int, int], None]


async def verify(place: JournalPlace, on_problem: OnProblem, on_progress: OnProgress | None = None) -> Verified:
    """Read a journal and tell what is wrong in it. Processes may go on working with it; nothing is changed.

    ``on_progress`` takes the numbers of events that were read, and that there are.

    Raises:
        JournalError: there is no journal, or it cannot be read or is not of this program's version.
    """
    async with snapshot_of(place) as snapshot:
        check_current(snapshot)
        damage = await snapshot.damage()
        for text in damage:
            on_problem(Problem("", text))
        verification = _Verification(snapshot, on_problem, on_progress)
        try:
            await verification.run()
        except JournalError as error:
            if not damage:
                raise
            on_problem(Problem("", str(error)))
        return verification.read


class _Verification:
    def __init__(self, snapshot: Snapshot, on_problem: OnProblem, on_progress: OnProgress | None) -> None:
        self._snapshot = snapshot
        self._on_problem = on_problem
        self._on_progress = on_progress
        self._tables = {table.name: _Reader(snapshot, table) for table in (EVENTS, MESSAGES, INBOX, PUSHES)}
        self._tasks = _Reader(snapshot, TASKS)
        self._chats = _Reader(snapshot, CHATS)

    @property
    def read(self) -> Verified:
        """The rows that were read so far."""
        readers = (self._tasks, *self._tables.values(), self._chats)
        return Verified({one.table.name: one.count for one in readers}, sum(one.characters for one in readers))

    async def run(self) -> None:
        (found,) = await self._snapshot.read("SELECT coalesce(sum(seq), 0) FROM tasks")
        total = int(found[0])
        while (row := await self._tasks.next()) is not None:
            for reader in self._tables.values():
                await self._orphans(reader, row[0])
            await self._task(row)
            if self._on_progress is not None:
                self._on_progress(min(self._tables["events"].count, total), total)
        for reader in self._tables.values():
            await self._orphans(reader, None)
        try:
            await started_tag(self._snapshot)
        except JournalError as error:
            self._on_problem(Problem("", str(error)))
        while (row := await self._chats.next()) is not None:
            self._chat(row)

    async def _task(self, row: Row) -> None:
        check = TaskCheck(row)
        try:
            await self._feed(check, row[0])
        except (TypeError, ValueError, AttributeError) as error:  # a value of another type than its column's
            self._on_problem(Problem(check.task_id, f"its rows cannot be read ({error})"))
        for text in check.problems:
            self._on_problem(Problem(check.task_id, text))

    async def _feed(self, check: TaskCheck, key: int) -> None:
        events, messages, inbox, pushes = self._tables.values()
        while (row := await events.next(key)) is not None:
            check.event(*row[1:])
        check.messages([(row[1], row[2]) async for row in messages.of(key)])
        check.inbox([(row[2], row[3]) async for row in inbox.of(key)])
        while (row := await pushes.next(key)) is not None:
            check.push(row[1], row[5])
        check.end()

    async def _orphans(self, reader: "_Reader", before: int | None) -> None:
        """Tell of the rows of tasks with lower keys, which are not there."""
        place = reader.table.index("task")
        while (row := await reader.peek()) is not None and (before is None or row[place] < before):
            key, count = row[place], 0
            async for _ in reader.of(key):
                count += 1
            self._on_problem(Problem("", f"{count} rows of table {reader.table.name} are of no task (key {key})"))

    def _chat(self, row: Row) -> None:
        values = dict(zip(CHATS.columns, row, strict=True))
        try:
            messages = as_list(json.loads(values["body"]))
            fits = len(messages) == values["count"] and math.isfinite(values["saved"])
        except (ValueError, TypeError, RecursionError, DecodeError):
            fits = False
        if not fits:
            self._on_problem(Problem("", f"the saved chat {values['name']!r} of {values['user']!r} cannot be read"))


class _Reader:
    """The rows of a table, one after the other."""

    def __init__(self, snapshot: Snapshot, table: StoredTable) -> None:
        self.table = table
        self.count = 0
        self.characters = 0
        self._place = table.columns.index("task") if "task" in table.key else 0
        self._batches = snapshot.rows(table)
        self._rows: Sequence[Row] = ()
        self._at = 0

    async def peek(self) -> Row | None:
        """Return the next row, and leave it there."""
        if self._at == len(self._rows):
            try:  # without a default, with which anext() fails in Python 3.11
                self._rows = await anext(self._batches)
            except StopAsyncIteration:
                self._rows = ()
            self._at = 0
        return self._rows[self._at] if self._rows else None

    async def next(self, key: int | None = None) -> Row | None:
        """Return the next row; with ``key`` only if it is of the task with that key."""
        row = await self.peek()
        if row is None or (key is not None and row[self._place] != key):
            return None
        self._at += 1
        self.count += 1
        self.characters += sum(len(value) for value in row if isinstance(value, str))
        return row

    async def of(self, key: int) -> AsyncIterator[Row]:
        """Yield the next rows as long as they are of the task with this key."""
        while (row := await self.next(key)) is not None:
            yield row
