"""Messages of others for a running task, in PostgreSQL. Whether they are taken: :mod:`isthmus.journal.sql.posting`."""

import json
from collections.abc import Sequence

from isthmus.events import AgentEvent, event_from_json
from isthmus.journal.port.task_rows import TaskRow
from isthmus.journal.postgres.driver import Connection
from isthmus.journal.postgres.reads import POSTGRES, numbered
from isthmus.journal.sql.posting import PostFacts, answered_calls, check_post, prompts_among
from isthmus.journal.sql.rows import ANSWERS, BY_MESSAGE, JSON, delivery_of, inbox_by_message


async def post_to(connection: Connection, row: TaskRow, events: Sequence[AgentEvent], bodies: Sequence[str]) -> None:
    """Put events into the inbox of a task, whose row is locked until the end of the transaction.

    Raises:
        StaleLease, RepeatedMessage, LimitReached: see the method.
    """
    key: int | None = await connection.fetchval(
        "SELECT key FROM tasks WHERE id = $1 AND epoch = $2 AND (owner IS NOT NULL OR tag > 0) FOR UPDATE",
        *(row.task_id, row.epoch),
    )
    check_post(row, events, bodies, None if key is None else await _facts(connection, key, row, events))
    kinds = [type(event).__name__ for event in events]
    await connection.execute(
        "INSERT INTO inbox (task, type, body) SELECT $1, * FROM unnest($2::text[], $3::text[])", key, kinds, bodies
    )
    await connection.execute("UPDATE tasks SET inbox = inbox + $2 WHERE key = $1", key, len(bodies))


async def _facts(connection: Connection, key: int, row: TaskRow, events: Sequence[AgentEvent]) -> PostFacts:
    answers: list[AgentEvent] = []
    messages: list[AgentEvent] = []
    count = size = 0
    if answered_calls(events):
        bodies = await connection.fetch(numbered(ANSWERS), row.task_id, row.seq, row.task_id)
        answers += (event_from_json(json.loads(body)) for (body,) in bodies)
    for prompt in prompts_among(events):
        taken = await connection.fetch(numbered(BY_MESSAGE), row.task_id, row.seq, prompt.message_id)
        waiting = await connection.fetch(numbered(inbox_by_message(POSTGRES)), row.task_id, JSON(prompt.message_id))
        messages += (delivery_of(values).event for values in (*taken, *waiting))
        count, size = await connection.fetchrow(
            "SELECT count(*), coalesce(sum(length(body)), 0)::bigint FROM inbox WHERE task = $1", key
        )
    return PostFacts(answers, messages, count, size)
