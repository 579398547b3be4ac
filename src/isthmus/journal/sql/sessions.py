"""The sessions in a journal in an SQL database. :mod:`isthmus.journal.port.sessions` documents each method.

A session is found by its last changed task: the tasks are read in the order of their change, by an index, and a task is
passed over if another one of its session changed later. So a list reads no more tasks than its sessions have.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from isthmus.client import LimitReached, TaskQuery
from isthmus.events import TaskState
from isthmus.journal.port.sessions import (
    QUEUED_CHARACTERS,
    QUEUED_MESSAGES,
    SEARCHED_CHARACTERS,
    SEARCHED_TASKS,
    FoundSessions,
    QueuedMessage,
    SessionChanges,
    SessionNote,
    SessionPlace,
    SessionQuery,
    SessionRow,
    SessionState,
    SessionStore,
)
from isthmus.journal.sql.reads import RowReader, RowWriter
from isthmus.journal.sql.rows import COLUMNS, DELETED, SqlDialect, row_from, task_conditions
from isthmus.journal.sql.searching import WordMatcher

_AT_ONCE: Final = 128
"""Number of sessions that are read at once."""
_IDS_AT_ONCE: Final = 400
"""Number of ids in one query; databases limit the values of a query."""
_UNENDED: Final = tuple(state for state in TaskState if not state.is_terminal)
_WAITING: Final = tuple(state for state in TaskState if state.is_waiting)
_SAME: Final = "other.context = tasks.context AND other.\"user\" || '' = tasks.\"user\" AND other.parent = ''"
"""Condition for another task of the session; the user is compared so that the index of the contexts is used."""
_IS_LAST: Final = (
    f"NOT EXISTS (SELECT 1 FROM tasks AS other WHERE {_SAME}"
    " AND other.key > tasks.key AND other.updated >= tasks.updated)"
    f" AND NOT EXISTS (SELECT 1 FROM tasks AS other WHERE {_SAME}"
    " AND other.key < tasks.key AND other.updated > tasks.updated)"
)
"""Condition for the last changed task of a session: mostly the first part refuses a task at once, by the index."""
_EXISTS: Final = "SELECT 1 FROM tasks WHERE context = ? AND \"user\" = ? AND parent = '' AND state <> ?"
_NOTE: Final = (
    'INSERT INTO sessions ("user", context, {0}, changed)'
    " SELECT CAST(? AS text), CAST(? AS text), CAST(? AS {1}), CAST(? AS double precision)"
    f" WHERE EXISTS ({_EXISTS})"
    ' ON CONFLICT ("user", context) DO UPDATE SET {0} = excluded.{0}, changed = excluded.changed'
)
_OF: Final = '"user" = ? AND context = ?'
_ROOM: Final = f"SELECT count(*), coalesce(sum(length(body)), 0) FROM queued WHERE {_OF} AND id <> ?"
_PUT: Final = (
    'INSERT INTO queued ("user", context, id, place, body, problem)'
    " SELECT CAST(? AS text), CAST(? AS text), CAST(? AS text), 1 +"
    f" (SELECT coalesce(max(place), 0) FROM queued WHERE {_OF}), CAST(? AS text), CAST(? AS text)"
    f" WHERE EXISTS ({_EXISTS})"
    ' ON CONFLICT ("user", context, id) DO UPDATE SET body = excluded.body, problem = excluded.problem'
)
_DROP: Final = f"DELETE FROM queued WHERE {_OF} AND id = ?"
_FIRST: Final = f"UPDATE queued SET place = (SELECT min(place) - 1 FROM queued WHERE {_OF}) WHERE {_OF} AND id = ?"
_TOUCH: Final = (
    'INSERT INTO sessions ("user", context, changed)'
    " SELECT CAST(? AS text), CAST(? AS text), CAST(? AS double precision)"
    f' WHERE EXISTS ({_EXISTS}) ON CONFLICT ("user", context) DO UPDATE SET changed = excluded.changed'
)
"""Statement that lets other processes see that a session changed."""
KEEP_TITLE: Final = (
    'INSERT INTO sessions ("user", context, title, changed)'
    ' SELECT "user", context, title, 0 FROM tasks WHERE context = (SELECT context FROM tasks WHERE id = ? AND'
    " parent = '') AND \"user\" = (SELECT \"user\" FROM tasks WHERE id = ?) AND parent = '' AND state <> ?"
    " ORDER BY CASE WHEN substr(title, 1, 1) = '/' THEN 1 ELSE 0 END, key LIMIT 1"
    " ON CONFLICT (\"user\", context) DO UPDATE SET title = excluded.title WHERE sessions.title = ''"
)
"""Statement that keeps the title of a session before one of its tasks is removed; its id twice, and DELETED."""
SESSION_OF: Final = "SELECT \"user\", context FROM tasks WHERE id = ? AND parent = ''"
"""Query for the key of the session to which a task belongs; nothing for the task of a subagent."""
DROP_NOTE: Final = (
    'DELETE FROM sessions WHERE "user" = ? AND context = ? AND NOT EXISTS'
    ' (SELECT 1 FROM tasks WHERE tasks.context = sessions.context AND tasks."user" = sessions."user" AND parent = \'\')'
)
"""Statement that removes the record of a session without tasks."""
DROP_QUEUE: Final = DROP_NOTE.replace("sessions", "queued")
"""Statement that removes the messages that wait in a session without tasks."""


class SqlSessions(SessionStore):
    """A :class:`~isthmus.journal.port.sessions.SessionStore` in tables of a journal."""

    def __init__(self, read: RowReader, write: RowWriter, clock: Callable[[], float], dialect: SqlDialect) -> None:
        self._read = read
        self._write = write
        self._clock = clock
        self._dialect = dialect
        self.changes = SessionChanges()

    @override
    async def list(self, query: SessionQuery, user: str, roots: Sequence[str] = ()) -> FoundSessions:
        matches = WordMatcher(query.words)
        found: list[tuple[SessionRow, str]] = []
        place, searched, tasks = query.after, 0, 0
        while True:
            contexts = await self._contexts(query, place, user, roots)
            sessions = await self._load(contexts, user)
            prompts = await self._prompts([row for row in sessions if not matches.fits(_shown(row))], user)
            for row in sessions:
                searched, tasks, place = searched + 1, tasks + len(row.tasks), row.place
                prompt = matches.found_in(_shown(row), prompts.get(row.context_id, ()))
                if prompt is not None and query.state in (None, row.state):
                    found.append((row, prompt))
                if len(found) >= query.limit or tasks >= SEARCHED_TASKS:
                    is_done = row is sessions[-1] and len(contexts) < _AT_ONCE
                    return FoundSessions(found, searched, None if is_done else place)
            if len(contexts) < _AT_ONCE:
                return FoundSessions(found, searched, None)
            place = place if sessions else contexts[-1]

    @override
    async def session(self, context_id: str, user: str, roots: Sequence[str] = ()) -> SessionRow | None:
        fits, values = task_conditions(TaskQuery(context_id=context_id), user, roots, self._dialect)
        query = f"SELECT {COLUMNS} FROM tasks WHERE {fits} AND parent = '' ORDER BY key"
        rows = await self._read(query, values, row_from)
        if not rows:
            return None
        notes = await self._notes([context_id], user)
        return (
            await self._with_questions([SessionRow(context_id, tuple(rows), notes.get(context_id, SessionNote()))])
        )[0]

    @override
    def rename(self, context_id: str, user: str, name: str) -> Awaitable[bool]:
        return self._note("name", "text", name, context_id, user)

    @override
    def archive(self, context_id: str, user: str, *, is_archived: bool) -> Awaitable[bool]:
        return self._note("archived", "double precision", self._clock() if is_archived else None, context_id, user)

    @override
    def draft(self, context_id: str, user: str, text: str) -> Awaitable[bool]:
        return self._note("draft", "text", text, context_id, user)

    @override
    async def queue(self, context_id: str, user: str) -> Sequence[QueuedMessage]:
        query = f"SELECT id, body, problem FROM queued WHERE {_OF} ORDER BY place, id"
        return await self._read(query, (user, context_id), lambda row: QueuedMessage(*row))

    @override
    async def put(self, context_id: str, user: str, message: QueuedMessage) -> bool:
        (found,) = await self._read(_ROOM, (user, context_id, message.id), lambda row: (int(row[0]), int(row[1])))
        if found[0] >= QUEUED_MESSAGES or found[1] + len(message.body) > QUEUED_CHARACTERS:
            raise LimitReached(
                f"{found[0]} messages ({found[1]:,} characters) wait in this session; the maximum is {QUEUED_MESSAGES}"
                f" and {QUEUED_CHARACTERS:,} characters. Remove one, or wait until one was sent"
            )
        mine = (user, context_id)
        values = (*mine, message.id, *mine, message.body, message.problem, context_id, user, DELETED)
        return await self._queued(_PUT, values, context_id, user)

    @override
    async def drop(self, context_id: str, user: str, message_id: str) -> bool:
        return await self._queued(_DROP, (user, context_id, message_id), context_id, user)

    @override
    async def move_first(self, context_id: str, user: str, message_id: str) -> bool:
        mine = (user, context_id)
        return await self._queued(_FIRST, (*mine, *mine, message_id), context_id, user)

    @override
    async def with_queues(self) -> Sequence[tuple[str, str]]:
        query = 'SELECT DISTINCT "user", context FROM queued'
        return await self._read(query, (), lambda row: (str(row[0]), str(row[1])))

    async def _queued(self, statement: str, values: Sequence[Any], context_id: str, user: str) -> bool:
        now = self._clock()
        written = self._write(statement, [values])
        touched = self._write(_TOUCH, [(user, context_id, now, context_id, user, DELETED)])
        is_changed = await written > 0
        await touched
        if is_changed:
            self.changes.notify(user, context_id, now)
        return is_changed

    @override
    async def changed_since(self, user: str, since: float) -> Sequence[tuple[str, float]]:
        query = 'SELECT context, changed FROM sessions WHERE "user" = ? AND changed >= ? ORDER BY changed'
        return await self._read(query, (user, since), lambda values: (str(values[0]), float(values[1])))

    def _note(self, column: str, kind: str, value: Any, context_id: str, user: str) -> "asyncio.Future[bool]":
        now = self._clock()
        values = (user, context_id, value, now, context_id, user, DELETED)
        written = self._write(_NOTE.format(column, kind), [values])

        async def note() -> bool:
            if is_there := await written > 0:
                self.changes.notify(user, context_id, now)
            return is_there

        return asyncio.ensure_future(note())

    async def _contexts(
        self, query: SessionQuery, after: SessionPlace | None, user: str, roots: Sequence[str]
    ) -> Sequence[SessionPlace]:
        """Return the next sessions that may fit, without those whose state is another one for certain."""
        plain = self._dialect.unindexed
        fits, conditions = task_conditions(TaskQuery(), user, roots, self._dialect)
        fits += f" AND parent = '' AND {_IS_LAST}"
        values: list[Any] = [*conditions]
        archived = 'SELECT context FROM sessions WHERE "user" = ? AND archived IS NOT NULL'
        fits += f" AND {'' if query.is_archived else plain}context {'' if query.is_archived else 'NOT '}IN ({archived})"
        values.append(user)
        if query.state in (SessionState.WAITING, SessionState.WORKING):
            marks = ", ".join("?" * len(_UNENDED))
            fits += f' AND context IN (SELECT context FROM tasks WHERE "user" = ? AND state IN ({marks}))'
            values += (user, *_UNENDED)
        if after is not None:
            fits += " AND updated <= ? AND (updated < ? OR context > ?)"
            values += (after.updated_at, after.updated_at, after.context_id)
        return await self._read(
            f"SELECT updated, context FROM tasks WHERE {fits} ORDER BY updated DESC, context LIMIT ?",
            (*values, _AT_ONCE),
            lambda row: SessionPlace(float(row[0]), str(row[1])),
        )

    async def _load(self, places: Sequence[SessionPlace], user: str) -> Sequence[SessionRow]:
        """Return the sessions at these places; those that were removed meanwhile are left out."""
        contexts = [place.context_id for place in places]
        rows = defaultdict[str, list[Any]](list)
        for some in _pieces(contexts):
            query = (
                f"SELECT {COLUMNS} FROM tasks WHERE context IN ({', '.join('?' * len(some))})"
                f" AND {self._dialect.unindexed}\"user\" = ? AND parent = '' AND {self._dialect.unindexed}state <> ?"
                " ORDER BY key"
            )
            for row in await self._read(query, (*some, user, DELETED), row_from):
                rows[row.context_id].append(row)
        notes = await self._notes(contexts, user)
        sessions = [
            SessionRow(context, tuple(rows[context]), notes.get(context, SessionNote()))
            for context in contexts
            if context in rows
        ]
        return await self._with_questions(sessions)

    async def _notes(self, contexts: Sequence[str], user: str) -> Mapping[str, SessionNote]:
        notes: dict[str, SessionNote] = {}
        for some in _pieces(contexts):
            query = (
                'SELECT context, name, title, archived, draft FROM sessions WHERE "user" = ?'
                f" AND context IN ({', '.join('?' * len(some))})"
            )
            found = await self._read(query, (user, *some), lambda row: (str(row[0]), SessionNote(*row[1:])))
            notes.update(found)
        return notes

    async def _with_questions(self, sessions: Sequence[SessionRow]) -> Sequence[SessionRow]:
        """Count the questions, also those of the subagents of tasks that are not over."""
        at_work = {task.task_id: row.context_id for row in sessions for task in row.tasks if not task.state.is_terminal}
        counts = {row.context_id: sum(len(task.pending) for task in row.tasks) for row in sessions}
        for some in _pieces(list(at_work)):
            query = (
                f"SELECT parent, pending FROM tasks WHERE parent IN ({', '.join('?' * len(some))}) AND parent <> ''"
                f" AND {self._dialect.unindexed}state IN ({', '.join('?' * len(_WAITING))})"
            )
            found = await self._read(query, (*some, *_WAITING), lambda row: (str(row[0]), len(json.loads(row[1]))))
            for parent, number in found:
                counts[at_work[parent]] += number
        return [SessionRow(row.context_id, row.tasks, row.note, counts[row.context_id]) for row in sessions]

    async def _prompts(self, sessions: Sequence[SessionRow], user: str) -> Mapping[str, Sequence[str]]:
        """Return the beginnings of all prompts of sessions, as JSON."""
        prompts = defaultdict[str, list[str]](list)
        for some in _pieces([row.context_id for row in sessions]):
            query = (
                f"SELECT tasks.context, substr(events.body, 1, {SEARCHED_CHARACTERS}) FROM tasks"
                f" {self._dialect.ordered_join} events ON events.task = tasks.key AND (events.seq = 1 OR events.seq IN"
                " (SELECT messages.seq FROM messages WHERE messages.task = tasks.key))"
                f" WHERE tasks.context IN ({', '.join('?' * len(some))})"
                f" AND {self._dialect.unindexed}tasks.\"user\" = ? AND tasks.parent = '' AND events.type = 'Prompt'"
                " ORDER BY tasks.key, events.seq"
            )
            for context, body in await self._read(query, (*some, user), lambda row: (str(row[0]), str(row[1]))):
                prompts[context].append(body)
        return prompts


def _shown(session: SessionRow) -> str:
    """Return the texts of a session in which words are sought first."""
    return "\n".join((session.title, session.workspace, *(task.title for task in session.tasks)))


def _pieces(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    """Return ids in pieces of the size that one query takes."""
    return (ids[start : start + _IDS_AT_ONCE] for start in range(0, len(ids), _IDS_AT_ONCE))
