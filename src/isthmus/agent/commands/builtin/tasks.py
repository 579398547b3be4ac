"""/tasks: lists the tasks of this session, or all tasks of the user."""

import time
from collections.abc import Sequence

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.client import TaskSnapshot

MAXIMUM_SHOWN = 100


async def list_session_tasks(context: CommandContext) -> None:
    """List the tasks of this session, and those of its subagents."""
    found = await _tasks(context)
    own = {task.task_id for task in found if task.context_id == context.session.context_id}
    tasks = [task for task in found if task.task_id in own or task.parent in own]
    await context.say(_format(tasks, "this session"))


async def list_user_tasks(context: CommandContext) -> None:
    """List all tasks that the user may see."""
    await context.say(_format(await _tasks(context), "all sessions"))


async def _tasks(context: CommandContext) -> Sequence[TaskSnapshot]:
    source = context.resources.tasks
    if source is None:
        raise CommandError("This agent cannot list its tasks.", "no_tasks")
    found = await source(context.session.task_id)
    return [task for task in found if task.task_id != context.session.task_id]


def _format(tasks: Sequence[TaskSnapshot], scope: str) -> str:
    if not tasks:
        return f"There are no tasks in {scope}."
    lines = [f"Tasks in {scope}, most recently changed first:", *map(_line, tasks[:MAXIMUM_SHOWN])]
    if len(tasks) > MAXIMUM_SHOWN:
        lines.append(f"and {len(tasks) - MAXIMUM_SHOWN} more")
    return "\n".join(lines)


def _line(task: TaskSnapshot) -> str:
    changed = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(task.updated_at))
    waiting = f" (waits for {', '.join(call.tool_name for call in task.pending)})" if task.pending else ""
    return f"- {task.task_id}  {task.state_text}{waiting}  {changed}  {task.title}"


COMMAND = CommandNode(
    "tasks",
    "List the tasks of this session",
    list_session_tasks,
    sub_commands=(CommandNode("all", "List the tasks of all sessions", list_user_tasks, needs_folder=False),),
    needs_folder=False,
)
