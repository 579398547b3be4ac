"""Messages of others for a running task, in PostgreSQL: what :meth:`isthmus.journal.base.Journal.post` does."""

import json
from collections.abc import Sequence

from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, event_from_json
from isthmus.journal.base import RepeatedMessage, StaleLease
from isthmus.journal.postgres_driver import Connection
from isthmus.journal.postgres_reads import POSTGRES, numbered
from isthmus.journal.rows import ANSWERS, BY_MESSAGE, JSON, check_inbox, delivery_of, inbox_by_message
from isthmus.journal.task_rows import TaskRow


async def post_to(connection: Connection, row: TaskRow, events: Sequence[AgentEvent], bodies: Sequence[str]) -> None:
    """Put events into the inbox of a task, whose row is locked until the end of the transaction.

    Raises:
        StaleLease, RepeatedMessage, LimitReached: see the method.
    """
    calls = {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}
    key: int | None = await connection.fetchval(
        "SELECT key FROM tasks WHERE id = $1 AND epoch = $2 AND (owner IS NOT NULL OR tag > 0) FOR UPDATE",
        *(row.task_id, row.epoch),
    )
    if key is None:
        raise StaleLease(f"task {row.task_id} is not running or has a new owner; the message was not sent")
    if calls and not (await _answered(connection, row)).isdisjoint(calls):
        raise StaleLease(f"a tool call of task {row.task_id} has been answered in the meantime")
    if any(isinstance(event, Prompt) for event in events):
        await _check_new(connection, row, events)
        count, size = await connection.fetchrow(
            "SELECT count(*), coalesce(sum(length(body)), 0)::bigint FROM inbox WHERE task = $1", key
        )
        check_inbox(row, count, size, bodies)
    kinds = [type(event).__name__ for event in events]
    await connection.execute(
        "INSERT INTO inbox (task, type, body) SELECT $1, * FROM unnest($2::text[], $3::text[])", key, kinds, bodies
    )
    await connection.execute("UPDATE tasks SET inbox = inbox + $2 WHERE key = $1", key, len(bodies))


async def _answered(connection: Connection, row: TaskRow) -> set[str]:
    """Return the ids of tool calls answered since the row was read, or whose answers wait in the inbox."""
    bodies = await connection.fetch(numbered(ANSWERS), row.task_id, row.seq, row.task_id)
    events = [event_from_json(json.loads(body)) for (body,) in bodies]
    return {event.confirmation.tool_call_id for event in events if isinstance(event, ConfirmationAccepted)}


async def _check_new(connection: Connection, row: TaskRow, events: Sequence[AgentEvent]) -> None:
    """Check that none of these messages has reached the task since its row was read."""
    for prompt in events:
        if isinstance(prompt, Prompt):
            taken = await connection.fetch(numbered(BY_MESSAGE), row.task_id, row.seq, prompt.message_id)
            waiting = await connection.fetch(numbered(inbox_by_message(POSTGRES)), row.task_id, JSON(prompt.message_id))
            if any(delivery_of(values).event == prompt for values in (*taken, *waiting)):
                raise RepeatedMessage(row.task_id)
