"""A copy of a session under another contextId: its ended tasks with all their events and files, under ids of their own.

A copy is whole before it has its last state, so that a process that ends in the middle leaves no torn conversation.
"""

import json
import uuid
from collections.abc import Mapping, Sequence

from isthmus.client import InvalidRequest, TaskNotFound, TaskSnapshot
from isthmus.engine.runs.runner import Runner
from isthmus.events import AgentEvent, StateChange, event_from_json, event_to_json
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.task_rows import NewTask
from isthmus.runtime.large_work import off_loop

MAXIMUM_TASKS = 1000
"""Maximum number of tasks of a session that is copied."""
LEASE_SECONDS = 60.0
"""Time in seconds for which a copy that is being written is not taken for one whose process has ended."""
CHARACTERS_OF_EVENT = 1000
"""Estimate of the size of an event as JSON, in characters."""
EVENTS_AT_ONCE = 1000
"""Number of events that are read in one step."""


async def fork_session(
    runner: Runner, user: str, tasks: Sequence[TaskSnapshot], context_id: str, new_context_id: str
) -> None:
    """Copy the ``tasks`` of a user's session, oldest first, into a new one.

    Raises:
        TaskNotFound: there are none.
        InvalidRequest: one has not ended, or there are too many.
        JournalError: not all could be copied.
    """
    if not tasks:
        raise TaskNotFound(f"there is no session {context_id[:100]}")
    if len(tasks) > MAXIMUM_TASKS:
        raise InvalidRequest(f"session {context_id[:100]} has {len(tasks)} tasks; at most {MAXIMUM_TASKS} are copied")
    if (busy := next((task for task in tasks if not task.state.is_terminal), None)) is not None:
        raise InvalidRequest(
            f"task {busy.task_id} of the session is {busy.state}: wait for its end, answer its question or cancel it,"
            " then fork the session"
        )
    ids = {task.task_id: str(uuid.uuid4()) for task in tasks}
    for task in tasks:
        await _copy(runner, user, task, new_context_id, ids)


async def _copy(runner: Runner, user: str, task: TaskSnapshot, context_id: str, ids: Mapping[str, str]) -> None:
    journal, new_id = runner.journal, ids[task.task_id]
    events: list[AgentEvent] = []
    seq = 0
    while found := await journal.events(task.task_id, seq, EVENTS_AT_ONCE):
        events += [delivery.event for delivery in found]
        seq = found[-1].seq or seq + len(found)
    renamed = await off_loop(len(events) * CHARACTERS_OF_EVENT, with_other_ids, events, ids)
    if (copy := runner.options.copy_files) is not None:
        await copy(task.task_id, new_id)
    new = NewTask(new_id, context_id, task.workspace, task.title, user)
    end = renamed[-1] if renamed else StateChange(task.state, task.error)
    taken = await journal.create(new, renamed[:-1], new_owner(), LEASE_SECONDS)
    await journal.finish(taken.lease, [end], ())


def with_other_ids(events: Sequence[AgentEvent], ids: Mapping[str, str]) -> list[AgentEvent]:
    """Return events in which other ids, which are unique, stand for the ids of tasks, also in paths of their files."""
    text = json.dumps([event_to_json(event) for event in events])
    for old, new in ids.items():
        text = text.replace(old, new)
    return [event_from_json(value) for value in json.loads(text)]
