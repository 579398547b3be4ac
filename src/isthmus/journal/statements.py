"""SQL that the steps of the embedded journal share: reading and writing the rows of events and inboxes.

All of it runs inside the caller's transaction; nothing here opens, commits or waits.
"""

import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from isthmus.client import Delivery, LimitReached, TaskQuery, UserLimits
from isthmus.development_tool import ToolCall
from isthmus.encoding.codec import from_json
from isthmus.encoding.compact_json import compact_encoder
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    event_from_json,
    event_to_json,
)
from isthmus.journal.base import (
    EVENT_CHARACTERS,
    Lease,
    NewTask,
    RepeatedMessage,
    StaleLease,
    TaskRow,
    UnkeepableEvent,
)

DELETED = "deleted"
"""State of a task that is being removed."""
COLUMNS = (
    "id, context, workspace, title, state, seq, owner, epoch, lease_until, created, updated, error, reason, pending,"
    " user, parent"
)
INBOX = "SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) ORDER BY number"
INBOX_BY_TYPE = "SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type = ? ORDER BY number"
BY_MESSAGE = (
    "SELECT events.seq, events.at, events.body FROM messages JOIN events USING (task, seq)"
    " WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ? AND message = ? ORDER BY seq"
)
"""Query for the events of a message, by its id."""
INBOX_BY_MESSAGE = (
    "SELECT NULL, 0, body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) AND instr(body, ?)"
    " ORDER BY number"
)
"""Query for the waiting events that may carry a message's id (as JSON): an inbox can hold megabytes.

Callers compare the ids themselves.
"""
ANSWERS = (
    "SELECT body FROM events WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ?"
    " AND type = 'ConfirmationAccepted' UNION ALL"
    " SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type = 'ConfirmationAccepted'"
)
"""Query for the answers to tool calls: those after a number among a task's events, and those in its inbox."""
CANCELLATION = (
    "SELECT 1 FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ? AND epoch = ?) AND type = 'StateChange'"
    " LIMIT 1"
)
"""Query for a cancellation in an inbox: the only StateChange that others leave for a task's owner."""
BEGUN_BY = (
    "SELECT id, digest FROM tasks WHERE message = ? AND user = ? AND message <> '' AND state NOT IN (?, ?)"
    " AND NOT EXISTS (SELECT 1 FROM events WHERE task = tasks.key AND seq > 1 AND type = 'Prompt') ORDER BY key DESC"
)
"""Query for the tasks that began with a message and have neither received another message nor been cancelled.

A client that did either knew of the task, so sending the same message again asks for a new task.
"""
ROWS_AT_ONCE = 16
log = logging.getLogger(__name__)
JSON = compact_encoder()


def encode_event(event: AgentEvent) -> str:
    """Return an event as its row stores it.

    Raises:
        UnkeepableEvent: it is not JSON, or too large.
    """
    try:
        body = JSON(event_to_json(event))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnkeepableEvent(f"an event ({type(event).__name__}) cannot be written as JSON: {error}") from error
    if len(body) > EVENT_CHARACTERS:
        raise UnkeepableEvent(
            f"an event ({type(event).__name__}) has {len(body)} characters as JSON; the maximum is {EVENT_CHARACTERS}."
            " Send it in pieces, or put it into a file"
        )
    return body


def append_events(
    connection: sqlite3.Connection, lease: Lease, events: Sequence[AgentEvent], now: float, at_end: str | None = None
) -> Sequence[Delivery]:
    """Add events. With ``at_end``, the task's open questions as JSON, release its lease in the same step.

    Uses few statements, one for the row and one for many events: the two threads may switch at each statement.
    """
    bodies = [encode_event(event) for event in events]  # Before anything is written, because it may fail.
    changes = "seq = seq + ?, updated = ?"
    values: list[Any] = [len(events), now]
    change = next((event for event in reversed(events) if isinstance(event, StateChange)), None)
    if change is not None:
        changes += ", state = ?, error = ?, reason = ?"
        values += [change.state, change.error, change.reason]
    if at_end is not None:
        changes += ", owner = NULL, lease_until = 0, pending = ?"
        values.append(at_end)
    found = connection.execute(
        f"UPDATE tasks SET {changes} WHERE id = ? AND epoch = ? AND owner = ? RETURNING key, seq",
        (*values, lease.task_id, lease.epoch, lease.owner),
    ).fetchone()
    if found is None:
        raise StaleLease(f"task {lease.task_id} was taken over by another process; this one stops working on it")
    key, seq = found
    return insert_events(connection, key, seq - len(events), now, events, bodies)


def insert_events(
    connection: sqlite3.Connection,
    key: int,
    seq: int,
    now: float,
    events: Iterable[AgentEvent],
    bodies: Sequence[str],
) -> Sequence[Delivery]:
    """Add events after number ``seq`` of the task with this key; :func:`encode_event` has made ``bodies``."""
    deliveries = [Delivery(number, now, event) for number, event in enumerate(events, seq + 1)]
    for start in range(0, len(deliveries), ROWS_AT_ONCE):
        values: list[Any] = []
        for item, body in zip(deliveries[start : start + ROWS_AT_ONCE], bodies[start:], strict=False):
            values += (key, item.seq, now, type(item.event).__name__, body)
        rows = ", ".join(["(?, ?, ?, ?, ?)"] * (len(values) // 5))
        connection.execute(f"INSERT INTO events (task, seq, at, type, body) VALUES {rows}", values)
    messages = [
        (key, item.event.message_id, item.seq)
        for item in deliveries
        if isinstance(item.event, Prompt | ConfirmationAccepted) and item.event.message_id
    ]
    if messages:
        connection.executemany("INSERT INTO messages (task, message, seq) VALUES (?, ?, ?)", messages)
    return deliveries


def inbox_of(connection: sqlite3.Connection, task_id: str) -> Sequence[AgentEvent]:
    """Return the events in the inbox of a task."""
    return [event_from_json(json.loads(body)) for (body,) in connection.execute(INBOX, (task_id,))]


def remove_from_inbox(connection: sqlite3.Connection, task_id: str, count: int) -> None:
    """Remove the ``count`` oldest events from the inbox of a task."""
    connection.execute(
        "DELETE FROM inbox WHERE number IN (SELECT number FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?)"
        " ORDER BY number LIMIT ?)",
        (task_id, count),
    )


def answered_calls(connection: sqlite3.Connection, row: TaskRow) -> set[str]:
    """Return the ids of tool calls answered since the row was read, or whose answers wait in the inbox."""
    bodies = connection.execute(ANSWERS, (row.task_id, row.seq, row.task_id))
    events = [event_from_json(json.loads(body)) for (body,) in bodies]
    return {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}


def check_new_message(connection: sqlite3.Connection, task: NewTask) -> None:
    """Check that no task of the user began with this task's message.

    Raises:
        RepeatedMessage: one did.
    """
    if task.message_id:
        for task_id, digest in connection.execute(BEGUN_BY, (task.message_id, task.user, DELETED, TaskState.CANCELED)):
            if digest == task.digest:
                raise RepeatedMessage(task_id)
            log.info(
                "message %r of %s was received before with other content, in task %s: treating it as a new message",
                task.message_id[:100],
                task.user or "the owner",
                task_id,
            )
            return


def check_not_posted(connection: sqlite3.Connection, row: TaskRow, events: Sequence[AgentEvent]) -> None:
    """Check that none of these messages has reached the task since its row was read.

    Raises:
        RepeatedMessage: one has; it is among the task's events, or in its inbox.
    """
    for prompt in events:
        if not isinstance(prompt, Prompt):
            continue
        taken = connection.execute(BY_MESSAGE, (row.task_id, row.seq, prompt.message_id)).fetchall()
        waiting = connection.execute(INBOX_BY_MESSAGE, (row.task_id, JSON(prompt.message_id))).fetchall()
        if any(delivery_of(values).event == prompt for values in (*taken, *waiting)):
            raise RepeatedMessage(row.task_id)


def row_of(connection: sqlite3.Connection, task_id: str) -> TaskRow:
    """Return the row of an existing task."""
    return row_from(connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,)).fetchone())


def row_from(values: Sequence[Any]) -> TaskRow:
    """Build a row from the values of its COLUMNS."""
    task_id, context, workspace, title, state, seq, owner, epoch, until, *ends, calls, user, parent = values
    pending = tuple(from_json(ToolCall, call) for call in json.loads(calls))
    ends += [pending, user, parent]
    return TaskRow(task_id, context, workspace, title, TaskState(state), seq, owner, epoch, until, *ends)


def task_conditions(query: TaskQuery, user: str, roots: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition for a query's rows and its values; tasks that are being removed never match."""
    states = tuple(TaskState) if query.state is None else (query.state,)
    # The plus keeps SQLite from using the index of states, because most tasks match.
    conditions = [f"{'+' if query.state is None else ''}state IN ({', '.join('?' * len(states))})"]
    values: list[Any] = list(states)
    for condition, value in (
        ("+user = ?", user),
        ("context = ?", query.context_id),
        ("updated >= ?", query.since),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if roots:
        below = [(root, root.rstrip("/\\") + os.sep) for root in roots]
        conditions.append(f"({' OR '.join(['workspace = ? OR substr(workspace, 1, ?) = ?'] * len(below))})")
        values += [value for root, beginning in below for value in (root, len(beginning), beginning)]
    return " AND ".join(conditions), tuple(values)


def after_condition(query: TaskQuery) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition for rows after the query's place and its values; both are empty without a place."""
    if query.after is None:
        return "", ()
    updated, task_id = query.after
    return " AND updated <= ? AND (updated < ? OR id > ?)", (updated, updated, task_id)


def delivery_of(values: Sequence[Any]) -> Delivery:
    """Build an event from its number, time and body."""
    return Delivery(values[0], values[1], event_from_json(json.loads(values[2])))


def check_limits(connection: sqlite3.Connection, user: str, limits: UserLimits, but: str | None = None) -> None:
    """Check that the user may have one more working task; ``but`` is a task of the user that is not counted.

    Tasks that another task began are not counted: the agent limits them itself.

    Raises:
        LimitReached: it would be too many.
    """
    if limits.max_tasks is None and limits.max_running is None:
        return
    rows = connection.execute(
        "SELECT state, count(*) FROM tasks WHERE user = ? AND state IN (?, ?, ?, ?) AND id IS NOT ? AND parent = ''"
        " GROUP BY state",
        (user, *(state for state in TaskState if not state.is_terminal), but),
    )
    counts: dict[str, int] = dict(rows.fetchall())
    unended = sum(counts.values())
    running = unended - sum(count for state, count in counts.items() if TaskState(state).is_waiting)
    if limits.max_tasks is not None and unended >= limits.max_tasks:
        raise LimitReached(
            f"you have {unended} tasks that work or wait for an answer; the limit is {limits.max_tasks}. Answer or"
            " cancel one of them, or wait until one has ended"
        )
    if limits.max_running is not None and running >= limits.max_running:
        raise LimitReached(
            f"{running} of your tasks are working; the limit is {limits.max_running} at once (tasks that wait for an"
            " answer do not count). Wait until one has ended, or cancel one"
        )
