"""/tasks: the tasks of this session, or all of the person's."""

import time
from collections.abc import Sequence

from isthmus.agent.commands.base import CommandContext, CommandNode, Fail, Say, Steps
from isthmus.client import TaskSnapshot

MAXIMUM_SHOWN = 100


async def of_session(context: CommandContext) -> Steps:
    """Those of this session."""
    tasks = await _tasks(context)
    if tasks is None:
        yield _UNKNOWN
        return
    yield Say(_told([task for task in tasks if task.context_id == context.session.context_id], "this session"))


async def of_person(context: CommandContext) -> Steps:
    """All that the person may see."""
    tasks = await _tasks(context)
    if tasks is None:
        yield _UNKNOWN
        return
    yield Say(_told(tasks, "all sessions"))


_UNKNOWN = Fail("This agent does not know of its tasks.", "no_tasks")


async def _tasks(context: CommandContext) -> Sequence[TaskSnapshot] | None:
    source = context.resources.tasks
    if source is None:
        return None
    found = await source(context.session.task_id)
    return [task for task in found if task.task_id != context.session.task_id]


def _told(tasks: Sequence[TaskSnapshot], whose: str) -> str:
    if not tasks:
        return f"There are no tasks in {whose}."
    lines = [f"Tasks in {whose}, the last changed first:", *map(_line, tasks[:MAXIMUM_SHOWN])]
    if len(tasks) > MAXIMUM_SHOWN:
        lines.append(f"and {len(tasks) - MAXIMUM_SHOWN} more")
    return "\n".join(lines)


def _line(task: TaskSnapshot) -> str:
    changed = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(task.updated_at))
    waiting = f" (waits for {', '.join(call.tool_name for call in task.pending)})" if task.pending else ""
    return f"- {task.task_id}  {task.state}{waiting}  {changed}  {task.title}"


COMMAND = CommandNode(
    "tasks",
    "List the tasks of this session",
    of_session,
    sub_commands=(CommandNode("all", "List the tasks of all sessions", of_person),),
)
