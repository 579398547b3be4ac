"""Rows of the journal's tables: their columns, the queries that every database takes, and what they decode to. No I/O.

Queries have a question mark for each value. What databases say differently is in a :class:`SqlDialect`.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isthmus.client import AllAtWork, Delivery, LimitReached, TaskQuery, UserLimits
from isthmus.development_tool import ToolCall
from isthmus.encoding.codec import from_json, to_json
from isthmus.encoding.compact_json import finite_encoder
from isthmus.events import AgentEvent, Prompt, TaskState, event_from_json, event_to_json
from isthmus.journal.port.base import (
    EVENT_CHARACTERS,
    INBOX_CHARACTERS,
    INBOX_MESSAGES,
    RepeatedMessage,
    UnkeepableEvent,
)
from isthmus.journal.port.task_rows import NewTask, TaskRow
from isthmus.journal.sql.event_text import decoded_event, encoded_event
from isthmus.record import record
from isthmus.runtime.large_values import LARGE_BYTES

log = logging.getLogger(__name__)
DELETED = "deleted"
"""State of a task that is being removed."""
QUEUED = "queued"
"""State as which a task is counted that waits in the queue, whatever its own is."""
COLUMNS = (
    "id, context, workspace, title, state, seq, owner, epoch, lease_until, created, updated, error, reason, pending,"
    ' "user", parent, label, tag'
)
INBOX = "SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) ORDER BY number"
INBOX_BY_TYPE = "SELECT body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?) AND type = ? ORDER BY number"
BY_MESSAGE = (
    "SELECT events.seq, events.at, events.body FROM messages JOIN events USING (task, seq)"
    " WHERE task = (SELECT key FROM tasks WHERE id = ?) AND seq > ? AND message = ? ORDER BY seq"
)
"""Query for the events of a message, by its id."""
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
    "SELECT id, digest FROM tasks WHERE message = ? AND \"user\" = ? AND message <> '' AND state NOT IN (?, ?)"
    " AND NOT EXISTS (SELECT 1 FROM events WHERE task = tasks.key AND seq > 1 AND type = 'Prompt') ORDER BY key DESC"
)
"""Query for the tasks that began with a message and have neither received another message nor been cancelled.

A client that did either knew of the task, so sending the same message again asks for a new task.
"""
NO_CALLS = "[]"
"""Stored form of no open questions."""
JSON = finite_encoder()
BRIEF_EVENTS = 16
"""Maximum number of events in a write that is brief enough for the event loop."""


@record
class SqlDialect:
    """Differences between the databases in the journal's queries.

    ``unindexed`` is put before a column whose index is not to be used. ``position`` is the function that finds a text
    in another. ``artifacts`` follows the table of events where those of artifacts are read by their own index.
    ``ordered_join`` joins tables in the order in which they are named.
    """

    unindexed: str
    position: str
    artifacts: str
    ordered_join: str


SQLITE = SqlDialect("+", "instr", " INDEXED BY artifact_events", "CROSS JOIN")


def inbox_by_message(dialect: SqlDialect) -> str:
    """Return the query for the waiting events that may carry a message's id (as JSON): an inbox can hold megabytes.

    Callers compare the ids themselves.
    """
    return (
        "SELECT NULL, 0, body FROM inbox WHERE task = (SELECT key FROM tasks WHERE id = ?)"
        f" AND {dialect.position}(body, ?) > 0 ORDER BY number"
    )


def are_brief(events: Sequence[AgentEvent]) -> bool:
    """Return whether events are few, and none of them is a large message, so that the event loop may write them."""
    return len(events) <= BRIEF_EVENTS and size_of_prompts(events) < LARGE_BYTES


def size_of_prompts(events: Sequence[AgentEvent]) -> int:
    """Return about how many characters the messages among some events have."""
    return sum(
        len(event.text) + sum(part.size for part in event.parts) for event in events if isinstance(event, Prompt)
    )


def encode_event(event: AgentEvent) -> str:
    """Return an event as its row stores it.

    Raises:
        UnkeepableEvent: it is not JSON, or too large.
    """
    try:
        body = encoded_event(event_to_json(event))
    except (TypeError, ValueError, RecursionError) as error:
        raise UnkeepableEvent(f"an event ({type(event).__name__}) cannot be written as JSON: {error}") from error
    if len(body) > EVENT_CHARACTERS:
        raise UnkeepableEvent(
            f"an event ({type(event).__name__}) has {len(body)} characters as JSON; the maximum is {EVENT_CHARACTERS}."
            " Send it in pieces, or put it into a file"
        )
    return body


def encode_events(events: Sequence[AgentEvent]) -> Sequence[str]:
    """Return events as their rows store them.

    Raises:
        UnkeepableEvent: one is not JSON, or too large.
    """
    return [encode_event(event) for event in events]


def row_from(values: Sequence[Any]) -> TaskRow:
    """Build a row from the values of its COLUMNS."""
    task_id, context, workspace, title, state, seq, owner, epoch, until, *ends, calls, user, parent, label, tag = values
    ends += [calls_from(calls), user, parent, label, tag > 0]
    return TaskRow(task_id, context, workspace, title, TaskState(state), seq, owner, epoch, until, *ends)


def calls_from(stored: str) -> tuple[ToolCall, ...]:
    """Return the open questions of a task from its column."""
    return () if stored == NO_CALLS else tuple(from_json(ToolCall, call) for call in json.loads(stored))


def stored_calls(calls: Sequence[ToolCall]) -> str:
    """Return the open questions of a task as its column has them."""
    return JSON([to_json(call) for call in calls]) if calls else NO_CALLS


def task_conditions(
    query: TaskQuery, user: str, roots: Sequence[str], dialect: SqlDialect
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition for a query's rows and its values; tasks that are being removed never match."""
    states = tuple(TaskState) if query.state is None else (query.state,)
    # Without a state most tasks match, so that its index would not help.
    conditions = [f"{dialect.unindexed if query.state is None else ''}state IN ({', '.join('?' * len(states))})"]
    values: list[Any] = list(states)
    for condition, value in (
        (f'{dialect.unindexed}"user" = ?', user),
        ("context = ?", query.context_id),
        ("updated >= ?", query.since),
    ):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    if roots:
        condition, places = below_roots(roots)
        conditions.append(condition)
        values += places
    return " AND ".join(conditions), tuple(values)


def below_roots(roots: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Return the SQL condition for tasks whose workspace is one of these folders or below one, and its values.

    Tasks without a folder match, too.
    """
    below = [(root, root.rstrip("/\\") + os.sep) for root in roots]
    condition = f"(workspace = '' OR {' OR '.join(['workspace = ? OR substr(workspace, 1, ?) = ?'] * len(below))})"
    return condition, [value for root, beginning in below for value in (root, len(beginning), beginning)]


def after_condition(query: TaskQuery) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition for rows after the query's place and its values; both are empty without a place."""
    if query.after is None:
        return "", ()
    updated, task_id = query.after
    return " AND updated <= ? AND (updated < ? OR id > ?)", (updated, updated, task_id)


def delivery_of(values: Sequence[Any]) -> Delivery:
    """Build an event from its number, time and body."""
    return Delivery(values[0], values[1], event_from_json(decoded_event(values[2])))


def counted_as(state: str, tag: int) -> str:
    """Return the state as which a task with this start tag is counted."""
    return QUEUED if tag else state


def check_counts(counts: Mapping[str, int], limits: UserLimits, *, queues: bool = False) -> None:
    """Check that a user may have one more working task; with ``queues``, one more that waits in the queue.

    ``counts`` has the number of the user's unended tasks by :func:`counted_as`.

    Raises:
        LimitReached: it would be too many; AllAtWork if it could wait instead.
    """
    unended = sum(counts.values())
    running = sum(counts.get(state, 0) for state in (TaskState.SUBMITTED, TaskState.WORKING))
    if limits.max_tasks is not None and unended >= limits.max_tasks:
        raise LimitReached(
            f"you have {unended} tasks that work, or wait for an answer or their turn; the limit is"
            f" {limits.max_tasks}. Answer or cancel one of them, or wait until one has ended"
        )
    if not queues and limits.max_running is not None and running >= limits.max_running:
        raise AllAtWork(
            f"{running} of your tasks are working; the limit is {limits.max_running} at once (tasks that wait for an"
            " answer or their turn do not count). Wait until one has ended, or cancel one"
        )


def check_begun(begun: Iterable[tuple[str, str]], task: NewTask) -> None:
    """Check that a task is the first with its message. ``begun`` has the rows of :data:`BEGUN_BY`.

    Raises:
        RepeatedMessage: a task of the same user began with it.
    """
    for task_id, digest in begun:
        if digest == task.digest:
            raise RepeatedMessage(task_id)
        log.info(
            "message %r of %s was received before with other content, in task %s: treating it as a new message",
            task.message_id[:100],
            task.user or "the owner",
            task_id,
        )
        return


def check_inbox(row: TaskRow, count: int, size: int, bodies: Sequence[str]) -> None:
    """Check that an inbox with ``count`` messages of ``size`` characters may take more.

    Raises:
        LimitReached: it would be too many.
    """
    if count + len(bodies) > INBOX_MESSAGES or size + sum(map(len, bodies)) > INBOX_CHARACTERS:
        raise LimitReached(
            f"{count} messages ({size} characters) are waiting for task {row.task_id}; the limit is"
            f" {INBOX_MESSAGES} messages and {INBOX_CHARACTERS} characters. Send this one again later."
        )
