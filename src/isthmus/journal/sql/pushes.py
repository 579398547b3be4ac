"""The push targets in a journal in an SQL database. :mod:`isthmus.journal.port.pushes` documents each method."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from typing_extensions import override

from isthmus.client import Delivery, LimitReached, PushTarget
from isthmus.encoding.codec import from_json, to_json
from isthmus.events import AgentEvent, StateChange
from isthmus.journal.port.base import JournalError
from isthmus.journal.port.pushes import PushJournal, PushRow, PushState
from isthmus.journal.sql.reads import RowReader, RowWriter, changed
from isthmus.journal.sql.rows import JSON, SqlDialect, delivery_of

_KEY = "task = (SELECT key FROM tasks WHERE tasks.id = ?) AND pushes.id = ?"
_COLUMNS = (
    "tasks.id, pushes.target, pushes.wire, pushes.uri, pushes.seq, pushes.state, pushes.attempts,"
    " pushes.next_attempt, pushes.owner, pushes.error, tasks.seq"
)
_BEHIND = "pushes.state = 'active' AND (pushes.owner IS NULL OR pushes.owner = ?) AND tasks.seq > pushes.seq"
_CHANGE = StateChange.__name__
_ADD = (
    "INSERT INTO pushes (task, id, target, wire, uri, seq, created, next_attempt)"
    " SELECT key, ?, ?, ?, ?, CAST(? AS bigint), CAST(? AS double precision), CAST(? AS double precision) FROM tasks"
    " WHERE id = ? AND (SELECT count(*) FROM pushes WHERE pushes.task = tasks.key AND pushes.id <> ?) < ?"
    " ON CONFLICT (task, id) DO UPDATE SET target = excluded.target, wire = excluded.wire, uri = excluded.uri,"
    " state = 'active', attempts = 0, error = NULL, next_attempt = excluded.next_attempt"
)
"""Statement that adds a target, unless its task is gone or has too many."""


class SqlPushes(PushJournal):
    """A :class:`~isthmus.journal.port.pushes.PushJournal` in tables of a journal."""

    def __init__(self, read: RowReader, write: RowWriter, clock: Callable[[], float], dialect: SqlDialect) -> None:
        self._read = read
        self._write = write
        self._clock = clock
        self._join = dialect.ordered_join
        self.on_change: Callable[[], None] | None = None
        self._adds = 0
        self._may_be_active = True
        """False only while there is certainly no active target, so that events cost nothing."""

    def watch(self, events: Sequence[AgentEvent], written: "asyncio.Future[Any]") -> None:
        """Call ``on_change`` once these events are written, if one of them is a state change."""
        if (
            self._may_be_active
            and self.on_change is not None
            and any(isinstance(event, StateChange) for event in events)
        ):
            written.add_done_callback(self._notify)

    def _notify(self, written: "asyncio.Future[Any]") -> None:
        self._may_be_active = True
        if self.on_change is not None and not written.cancelled() and written.exception() is None:
            self.on_change()

    # --- writing ---

    @override
    def add(self, row: PushRow, limit: int) -> Awaitable[None]:
        now = self._clock()
        target = JSON(to_json(row.target))
        values = (row.target.id, target, row.wire_name, row.uri, row.seq, now, now, row.task_id, row.target.id, limit)
        self._adds += 1
        self._may_be_active = True
        written = self._write(_ADD, [values])
        written.add_done_callback(self._notify)
        return asyncio.ensure_future(self._added(written, row, limit))

    async def _added(self, written: "asyncio.Future[int]", row: PushRow, limit: int) -> None:
        """Say why a target was not added, if it was not."""
        if await written:
            return
        query = "SELECT (SELECT count(*) FROM pushes WHERE task = tasks.key AND id <> ?) FROM tasks WHERE id = ?"
        others = await self._read(query, (row.target.id, row.task_id), lambda values: int(values[0]))
        if not others:
            raise JournalError(f"task {row.task_id} does not exist any more")
        raise LimitReached(
            f"task {row.task_id} has {max(others[0], limit)} push notification configs, which is the maximum; "
            "delete one, or set one of their ids again"
        )

    @override
    def remove(self, task_id: str, push_id: str) -> Awaitable[None]:
        return self._change(f"DELETE FROM pushes WHERE {_KEY}", [(task_id, push_id)])

    @override
    def claim(self, row: PushRow, owner: str) -> Awaitable[bool]:
        statement = (
            f"UPDATE pushes SET owner = ? WHERE {_KEY} AND (owner IS NULL OR owner = ?) AND state = 'active'"
            " AND seq = ? AND target = ?"
        )
        values = (owner, row.task_id, row.target.id, owner, row.seq, JSON(to_json(row.target)))
        return changed(self._write, statement, values)

    @override
    def delivered(self, row: PushRow, owner: str, seq: int) -> Awaitable[None]:
        statement = (
            f"UPDATE pushes SET seq = ?, attempts = 0, next_attempt = 0, error = NULL, owner = NULL WHERE {_KEY}"
            " AND owner = ?"
        )
        return self._change(statement, [(seq, row.task_id, row.target.id, owner)])

    @override
    def failed(self, row: PushRow, owner: str, error: str, next_attempt: float | None) -> Awaitable[None]:
        state = PushState.ACTIVE if next_attempt is not None else PushState.GIVEN_UP
        statement = (
            "UPDATE pushes SET attempts = attempts + 1, error = ?, next_attempt = ?, state = ?, owner = NULL"
            f" WHERE {_KEY} AND owner = ?"
        )
        return self._change(statement, [(error, next_attempt or 0.0, state, row.task_id, row.target.id, owner)])

    @override
    def release(self, owners: Sequence[str]) -> Awaitable[None]:
        statement = "UPDATE pushes SET owner = NULL WHERE owner = ?"
        return self._change(statement, [(owner,) for owner in owners])

    def _change(self, statement: str, rows: Sequence[Sequence[Any]]) -> Awaitable[None]:
        written = self._write(statement, rows)

        async def end() -> None:
            await written

        return asyncio.ensure_future(end())

    # --- reading ---

    @override
    async def of_task(self, task_id: str) -> Sequence[PushRow]:
        query = (
            f"SELECT {_COLUMNS} FROM pushes JOIN tasks ON tasks.key = pushes.task WHERE tasks.id = ?"
            " ORDER BY pushes.created, pushes.id"
        )
        return await self._read(query, (task_id,), _row)

    @override
    async def owners(self) -> Sequence[str]:
        query = "SELECT DISTINCT owner FROM pushes WHERE owner IS NOT NULL"
        return await self._read(query, (), lambda values: str(values[0]))

    @override
    async def behind(self, limit: int, since: float = 0, owner: str | None = None) -> Sequence[tuple[PushRow, int]]:
        # Two queries by an index each, as most targets belong to tasks that ended long ago.
        query = (
            f"SELECT {_COLUMNS} FROM tasks {self._join} pushes ON pushes.task = tasks.key WHERE tasks.updated >= ?"
            f" AND pushes.next_attempt = 0 AND {_BEHIND} UNION ALL SELECT {_COLUMNS} FROM pushes"
            f" JOIN tasks ON tasks.key = pushes.task WHERE pushes.next_attempt > 0 AND {_BEHIND} ORDER BY 8 LIMIT ?"
        )
        return await self._read(query, (since, owner, owner, limit), lambda values: (_row(values), int(values[10])))

    @override
    async def counts(self) -> Mapping[PushState, int]:
        query = "SELECT state, count(*) FROM pushes GROUP BY state"
        return dict(await self._read(query, (), lambda values: (PushState(values[0]), int(values[1]))))

    @override
    async def has_active(self) -> bool:
        query = "SELECT 1 FROM pushes WHERE state = 'active' LIMIT 1"
        adds = self._adds
        found = bool(await self._read(query, (), lambda values: True))
        # A target that is being added may be written only after the query.
        self._may_be_active = found or adds != self._adds
        return self._may_be_active

    @override
    async def next_change(self, task_id: str, after: int) -> Delivery | None:
        query = (
            "SELECT seq, at, body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ?"
            " AND type = ? ORDER BY seq LIMIT 1"
        )
        found = await self._read(query, (task_id, after, _CHANGE), delivery_of)
        return found[0] if found else None


def _row(values: Sequence[Any]) -> PushRow:
    task_id, target, wire, uri, seq, state, attempts, next_attempt, owner, error = values[:10]
    decoded = from_json(PushTarget, json.loads(target))
    return PushRow(task_id, decoded, wire, uri, seq, PushState(state), attempts, next_attempt, owner, error)
