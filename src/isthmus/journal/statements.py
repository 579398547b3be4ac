"""SQL that the steps of the embedded journal share: reading and writing the rows of events and inboxes.

All of it runs inside the caller's transaction; nothing here opens, commits or waits.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from isthmus.client import Delivery, UserLimits
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, event_from_json
from isthmus.journal.base import JournalError, RepeatedMessage, StaleLease
from isthmus.journal.rows import (
    ANSWERS,
    BEGUN_BY,
    BY_MESSAGE,
    COLUMNS,
    DELETED,
    INBOX,
    JSON,
    SQLITE,
    check_begun,
    check_counts,
    counted_as,
    delivery_of,
    encode_event,
    inbox_by_message,
    row_from,
)
from isthmus.journal.task_rows import Lease, NewTask, TaskRow

ROWS_AT_ONCE = 16


def insert_task(
    connection: sqlite3.Connection,
    task: NewTask,
    events: Sequence[AgentEvent],
    owner: str | None,
    until: float,
    now: float,
    tag: int = 0,
    most: int | None = None,
) -> tuple[TaskRow, Sequence[Delivery]]:
    """Add a task with its first events, leased to ``owner``, or without one with its start tag in the queue.

    It waits there until fewer than ``most`` tasks of its user are at work.

    Raises:
        JournalError: there is such a task.
    """
    bodies = [encode_event(event) for event in events]
    made = (task.task_id, task.context_id, task.workspace, task.title, TaskState.SUBMITTED, len(events), owner)
    ends = (task.user, task.parent, task.label)
    try:
        cursor = connection.execute(
            "INSERT INTO tasks (id, context, workspace, title, state, seq, owner, epoch, lease_until, created, updated,"
            " user, parent, label, message, digest, tag, running_limit)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*made, until, now, now, *ends, task.message_id, task.digest, tag, most),
        )
    except sqlite3.IntegrityError as error:
        raise JournalError(f"task {task.task_id} exists already; task ids are made once") from error
    deliveries = insert_events(connection, cursor.lastrowid or 0, 0, now, events, bodies)
    row = TaskRow(*made, 1, until, now, now, None, None, (), *ends, tag > 0)
    return row, deliveries


def claim_task(
    connection: sqlite3.Connection,
    row: TaskRow,
    events: Sequence[AgentEvent],
    owner: str | None,
    until: float,
    now: float,
    tag: int = 0,
    reserved: str = "",
    most: int | None = None,
) -> tuple[TaskRow, Sequence[Delivery]] | None:
    """Add events to a task at rest that ``owner`` works on, or without one let it wait; None if it is not as it was.

    It waits until fewer than ``most`` tasks of its user are at work.
    """
    bodies = [encode_event(event) for event in events]  # Before anything is written.
    change = _last_change(events) or StateChange(TaskState.WORKING)
    changed = connection.execute(
        "UPDATE tasks SET state = ?, error = ?, reason = ?, owner = ?, epoch = epoch + 1, lease_until = ?, tag = ?,"
        " reserved = ?, running_limit = ?, pending = '[]', seq = seq + ?, updated = ?"
        " WHERE id = ? AND owner IS NULL AND tag = 0 AND epoch = ? RETURNING key, seq",
        (
            *(change.state, change.error, change.reason, owner, until, tag, reserved, most, len(events), now),
            *(row.task_id, row.epoch),
        ),
    ).fetchone()
    if changed is None:
        return None
    key, seq = changed
    deliveries = insert_events(connection, key, seq - len(events), now, events, bodies)
    return row_of(connection, row.task_id), deliveries


def append_events(
    connection: sqlite3.Connection, lease: Lease, events: Sequence[AgentEvent], now: float, at_end: str | None = None
) -> Sequence[Delivery]:
    """Add events. With ``at_end``, the task's open questions as JSON, release its lease in the same step.

    Uses few statements, one for the row and one for many events: the two threads may switch at each statement.
    """
    bodies = [encode_event(event) for event in events]  # Before anything is written, because it may fail.
    changes = "seq = seq + ?, updated = ?"
    values: list[Any] = [len(events), now]
    if (change := _last_change(events)) is not None:
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


def _last_change(events: Sequence[AgentEvent]) -> StateChange | None:
    return next((event for event in reversed(events) if isinstance(event, StateChange)), None)


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
        check_begun(connection.execute(BEGUN_BY, (task.message_id, task.user, DELETED, TaskState.CANCELED)), task)


def check_not_posted(connection: sqlite3.Connection, row: TaskRow, events: Sequence[AgentEvent]) -> None:
    """Check that none of these messages has reached the task since its row was read.

    Raises:
        RepeatedMessage: one has; it is among the task's events, or in its inbox.
    """
    for prompt in events:
        if not isinstance(prompt, Prompt):
            continue
        taken = connection.execute(BY_MESSAGE, (row.task_id, row.seq, prompt.message_id)).fetchall()
        waiting = connection.execute(inbox_by_message(SQLITE), (row.task_id, JSON(prompt.message_id))).fetchall()
        if any(delivery_of(values).event == prompt for values in (*taken, *waiting)):
            raise RepeatedMessage(row.task_id)


def row_of(connection: sqlite3.Connection, task_id: str) -> TaskRow:
    """Return the row of an existing task."""
    return row_from(connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,)).fetchone())


def check_limits(
    connection: sqlite3.Connection, user: str, limits: UserLimits, but: str | None = None, *, queues: bool = False
) -> None:
    """Check that the user may have one more working task; ``but`` is a task of the user that is not counted.

    With ``queues`` it waits in the queue. Tasks that another task began are not counted: the agent limits them itself.

    Raises:
        LimitReached: it would be too many; AllAtWork if it could wait instead.
    """
    if limits.max_tasks is None and limits.max_running is None:
        return
    rows = connection.execute(
        'SELECT state, tag > 0, count(*) FROM tasks WHERE "user" = ? AND state IN (?, ?, ?, ?) AND id IS NOT ?'
        " AND parent = '' GROUP BY 1, 2",
        (user, *(state for state in TaskState if not state.is_terminal), but),
    )
    counts: Counter[str] = Counter()
    for state, tag, count in rows:
        counts[counted_as(state, tag)] += count
    check_counts(counts, limits, queues=queues)
