"""The statements of a group of writes in SQLite: the facts that it reads, and what it leaves.

All of it runs inside the caller's transaction; nothing here opens, commits or waits. What the writes come to is decided
in :mod:`isthmus.journal.sql.write_group`.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.journal.sql.rows import BEGUN_BY, DELETED, counted_as
from isthmus.journal.sql.task_writes import TaskWrite
from isthmus.journal.sql.write_facts import CHANGING, KEPT, NEW, Facts, Needs, NewEvent, TaskEntry, Waiting
from isthmus.journal.sql.write_group import WriteGroup, exists_already

ROWS_AT_ONCE = 16
"""Number of events that one statement stores."""
_TASK = f"SELECT key, {', '.join((*KEPT, *CHANGING))} FROM tasks WHERE id = ?"
_INBOX = "SELECT number, body FROM inbox WHERE task = ? ORDER BY number"
_COUNTS = (
    "SELECT state, tag > 0, count(*) FROM tasks WHERE user = ? AND state IN (?, ?, ?, ?) AND parent = '' GROUP BY 1, 2"
)
_UNENDED = tuple(state.value for state in TaskState if not state.is_terminal)
_TAGS = "SELECT started, (SELECT ifnull(max(tag), 0) FROM tasks WHERE tag > 0 AND user = ?) FROM queue"
_ATTRIBUTES = {"id": "task_id", '"user"': "user", **NEW}
_ADDED = (*KEPT, *CHANGING, *NEW)
_ADD = f"INSERT INTO tasks ({', '.join(_ADDED)}) VALUES ({', '.join('?' * len(_ADDED))})"
_new_values = attrgetter(*(_ATTRIBUTES.get(name, name) for name in _ADDED))
_changing_values = attrgetter(*CHANGING)


def write_tasks(connection: sqlite3.Connection, writes: Sequence[TaskWrite | IsthmusError], now: float) -> list[Any]:
    """Do writes at the time ``now`` (Unix seconds); return the result of each, or its error.

    An error in place of a write is its result.

    Raises:
        JournalError: there is a task already that one of them creates.
    """
    facts, before = read_facts(connection, Needs(write for write in writes if not isinstance(write, IsthmusError)))
    group = WriteGroup(facts, now)
    results = group.results(writes)
    store(connection, group, before)
    return results


def read_facts(connection: sqlite3.Connection, needs: Needs) -> tuple[Facts, dict[str, Sequence[Any]]]:
    """Return what a group depends on, and the stored values of its tasks' columns."""
    facts = Facts()
    before: dict[str, Sequence[Any]] = {}
    for task_id in needs.tasks:
        if (values := connection.execute(_TASK, (task_id,)).fetchone()) is not None:
            facts.entries[task_id] = TaskEntry(*values)
            before[task_id] = values[-len(CHANGING) :]
    for task_id in needs.inboxes:
        if (entry := facts.entries.get(task_id)) is not None:
            facts.inboxes[task_id] = [Waiting(*values) for values in connection.execute(_INBOX, (entry.key,))]
    for user, message in needs.messages:
        values = (message, user, DELETED, TaskState.CANCELED)
        facts.begun[user, message] = connection.execute(BEGUN_BY, values).fetchall()
    for user in needs.limited:
        counts = facts.counts[user] = Counter[str]()
        for state, tag, count in connection.execute(_COUNTS, (user, *_UNENDED)):
            counts[counted_as(state, tag)] += count
    for user in needs.queueing:
        facts.started, facts.tags[user] = connection.execute(_TAGS, (user,)).fetchone()
    return facts, before


def store(connection: sqlite3.Connection, group: WriteGroup, before: Mapping[str, Sequence[Any]]) -> None:
    """Store what a group has left; ``before`` has the stored values of its tasks' columns."""
    for entry in group.entries.values():
        if entry.key is None:
            entry.key = _add(connection, entry)
        elif entry.is_changed:
            # An index costs time when one of its columns is set, even to the same value.
            values = _changing_values(entry)
            changed = [place for place, value in enumerate(before[entry.task_id]) if value != values[place]]
            if changed:
                given = [values[place] for place in changed]
                connection.execute(_update(tuple(changed)), (*given, entry.key))
    _add_events(connection, group.events)
    if group.messages:
        connection.executemany(
            "INSERT INTO messages (task, message, seq) VALUES (?, ?, ?)",
            [(entry.key, message, seq) for entry, message, seq in group.messages],
        )
    if group.taken:
        connection.executemany("DELETE FROM inbox WHERE number = ?", [(number,) for number in group.taken])


def _add(connection: sqlite3.Connection, entry: TaskEntry) -> int:
    try:
        return connection.execute(_ADD, _new_values(entry)).lastrowid or 0
    except sqlite3.IntegrityError as error:
        raise exists_already(entry.task_id) from error


@cache
def _update(places: Sequence[int]) -> str:
    """Return the statement that sets these of the CHANGING columns."""
    return f"UPDATE tasks SET {', '.join(f'{CHANGING[place]} = ?' for place in places)} WHERE key = ?"


@cache
def _insert(rows: int) -> str:
    """Return the statement that adds a number of events."""
    return f"INSERT INTO events (task, seq, at, type, body) VALUES {', '.join(['(?, ?, ?, ?, ?)'] * rows)}"


def _add_events(connection: sqlite3.Connection, events: Sequence[NewEvent]) -> None:
    """Add events in few statements: the two threads may switch at each statement."""
    for start in range(0, len(events), ROWS_AT_ONCE):
        values: list[Any] = []
        some = events[start : start + ROWS_AT_ONCE]
        for entry, item, body in some:
            values += (entry.key, item.seq, item.at, type(item.event).__name__, body)
        connection.execute(_insert(len(some)), values)
