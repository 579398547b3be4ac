"""Messages of others for a running task, in SQLite. Whether they are taken: :mod:`isthmus.journal.sql.posting`."""

import json
import sqlite3
from collections.abc import Sequence

from isthmus.events import AgentEvent, event_from_json
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.sql.posting import PostFacts, answered_calls, check_post, prompts_among
from isthmus.journal.sql.rows import ANSWERS, BY_MESSAGE, JSON, SQLITE, delivery_of, encode_events, inbox_by_message


def post_to(connection: sqlite3.Connection, row: TaskRow, events: Sequence[AgentEvent]) -> None:
    """Put events into the inbox of a task, in the caller's transaction.

    Raises:
        StaleLease, RepeatedMessage, LimitReached, UnkeepableEvent: see :meth:`isthmus.journal.port.base.Journal.post`.
    """
    bodies = encode_events(events)
    found = connection.execute(
        "SELECT key FROM tasks WHERE id = ? AND epoch = ? AND (owner IS NOT NULL OR tag > 0)", (row.task_id, row.epoch)
    ).fetchone()
    key: int | None = None if found is None else found[0]
    check_post(row, events, bodies, None if key is None else _facts(connection, key, row, events))
    connection.executemany("INSERT INTO inbox (task, body) VALUES (?, ?)", [(key, body) for body in bodies])


def _facts(connection: sqlite3.Connection, key: int, row: TaskRow, events: Sequence[AgentEvent]) -> PostFacts:
    answers: list[AgentEvent] = []
    messages: list[AgentEvent] = []
    count = size = 0
    if answered_calls(events):
        bodies = connection.execute(ANSWERS, (row.task_id, row.seq, row.task_id))
        answers += (event_from_json(json.loads(body)) for (body,) in bodies)
    for prompt in prompts_among(events):
        taken = connection.execute(BY_MESSAGE, (row.task_id, row.seq, prompt.message_id)).fetchall()
        waiting = connection.execute(inbox_by_message(SQLITE), (row.task_id, JSON(prompt.message_id))).fetchall()
        messages += (delivery_of(values).event for values in (*taken, *waiting))
        count, size = connection.execute(
            "SELECT count(*), ifnull(sum(length(body)), 0) FROM inbox WHERE task = ?", (key,)
        ).fetchone()
    return PostFacts(answers, messages, count, size)
