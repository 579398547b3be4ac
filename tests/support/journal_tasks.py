"""Tasks that the tests of journals write."""

from collections.abc import Sequence

from isthmus.events import AgentEvent, Prompt, TextContent
from isthmus.journal.port.base import Journal
from isthmus.journal.port.task_rows import ClaimedTask, NewTask, TaskRow

LEASE = 20.0


def texts(*words: str) -> Sequence[AgentEvent]:
    """Return a text event for each word."""
    return [TextContent("m", word) for word in words]


async def new_task(journal: Journal, task_id: str = "t1", context_id: str = "c1") -> ClaimedTask:
    """Create a task of the local user."""
    task = NewTask(task_id, context_id, "/work", "Fix it")
    return await journal.create(task, [Prompt("m1", "Fix it")], "owner-a", LEASE)


async def row_of(journal: Journal, task_id: str = "t1") -> TaskRow:
    """Return the row of an existing task."""
    row = await journal.task(task_id)
    assert row is not None
    return row
