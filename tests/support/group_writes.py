"""Writes of a journal as tests of its rules make them, and what they do to tables in memory."""

from collections.abc import Sequence
from typing import Any

from isthmus.client import NO_LIMITS, UserLimits
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, Prompt, StateChange, TaskState, TextContent
from isthmus.journal.port.task_rows import ClaimedTask, Lease, NewTask, TaskRow
from isthmus.journal.sql.rows import encode_events
from isthmus.journal.sql.task_writes import Append, Claim, Create, FinishRun, Take, TaskWrite
from support.group_tables import GroupTables

NOW, SECONDS = 1000.0, 60.0
TEXT: Sequence[AgentEvent] = [TextContent("m", "Hello")]
END = StateChange(TaskState.COMPLETED)
ASK = StateChange(TaskState.INPUT_REQUIRED)


def create(number: int = 1, owner: str | None = "owner-a", limits: UserLimits = NO_LIMITS, **options: Any) -> Create:
    task = NewTask(f"t{number}", "c1", "/work", "Fix it", **{"user": "u1", **options})
    events = [Prompt(task.message_id or "m1", "Fix it")]
    return Create(task, events, encode_events(events), owner, SECONDS if owner else 0.0, limits)


def append(lease: Lease, events: Sequence[AgentEvent] = TEXT) -> Append:
    return Append(lease, events, encode_events(events))


def finish(lease: Lease, change: StateChange = END, *, discards_inbox: bool = False) -> FinishRun:
    return FinishRun(lease, [change], encode_events([change]), "[]", discards_inbox)


def take(lease: Lease) -> Take:
    return Take(lease, TEXT, encode_events(TEXT), 1)


def say_more(lease: Lease) -> Append:
    return append(lease, [Prompt("m2", "And this")])


def cancel(lease: Lease) -> FinishRun:
    return finish(lease, StateChange(TaskState.CANCELED))


def claim(row: TaskRow, owner: str | None = "owner-b", limits: UserLimits = NO_LIMITS, reserved: str = "") -> Claim:
    return Claim(row, TEXT, encode_events(TEXT), owner, SECONDS if owner else 0.0, limits, reserved)


def do(tables: GroupTables, write: TaskWrite, now: float = NOW) -> Any:
    (result,) = tables.commit([write], now)
    if isinstance(result, IsthmusError):
        raise result
    return result


def begun(tables: GroupTables, number: int = 1, **options: Any) -> ClaimedTask:
    result = do(tables, create(number, **options))
    assert isinstance(result, ClaimedTask)
    return result


def at_rest(tables: GroupTables, number: int = 1, change: StateChange = ASK) -> TaskRow:
    """Return the row of a task that was created and whose run has ended."""
    task = begun(tables, number)
    do(tables, finish(task.lease, change))
    entry = tables.tasks[task.lease.task_id]
    row = task.row
    return TaskRow(
        *(row.task_id, row.context_id, row.workspace, row.title, TaskState(entry.state), entry.seq, entry.owner),
        *(entry.epoch, entry.lease_until, row.created_at, entry.updated),
        user=row.user,
    )
