"""The visible plan of a task: what the agent has listed to do, as its calls of ``write_todos`` say. Pure.

The plan has no event of its own: each call carries the whole list in its arguments, in Gemini CLI's form. So a client
which does not know about plans shows a tool call, and a stored task has its plan.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

from isthmus.development_tool import ToolCall
from isthmus.record import record

WRITE_TODOS = "write_todos"
"""Name of the tool."""
MAXIMUM_TODOS = 50
"""Maximum number of entries of a list."""
MAXIMUM_CHARACTERS = 500
"""Maximum length of an entry in characters."""


class TodoStatus(StrEnum):
    """Status of an entry."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"

    @property
    def is_open(self) -> bool:
        """Whether there is still something to do."""
        return self not in (TodoStatus.COMPLETED, TodoStatus.CANCELLED)


_MARKS = {TodoStatus.COMPLETED: "x", TodoStatus.IN_PROGRESS: "~", TodoStatus.CANCELLED: "-", TodoStatus.BLOCKED: "!"}


@record
class Todo:
    """An entry of the list."""

    description: str
    status: TodoStatus = TodoStatus.PENDING


def todos_of(call: ToolCall) -> tuple[Todo, ...] | None:
    """Return the list that a call of ``write_todos`` states; None for any other call, or an invalid list."""
    if call.tool_name != WRITE_TODOS:
        return None
    entries = call.input_parameters.get("todos")
    if not isinstance(entries, list):
        return None
    todos = [_todo(entry) for entry in cast("list[object]", entries)[:MAXIMUM_TODOS]]
    found = tuple(todo for todo in todos if todo is not None)
    return found if len(found) == len(todos) else None


def summary(todos: Sequence[Todo]) -> str:
    """Return the state of a list in one line: how much is done, and what is worked on."""
    if not todos:
        return "nothing to do"
    done = sum(todo.status is TodoStatus.COMPLETED for todo in todos)
    counted = sum(todo.status is not TodoStatus.CANCELLED for todo in todos)
    now = next((todo.description for todo in todos if todo.status is TodoStatus.IN_PROGRESS), "")
    return f"{done} of {counted} done" + (f", now: {now}" if now else "")


def checklist(todos: Sequence[Todo]) -> str:
    """Return a list in the form of Markdown."""
    return "\n".join(f"- [{_MARKS.get(todo.status, ' ')}] {todo.description}" for todo in todos)


def _todo(entry: object) -> Todo | None:
    if not isinstance(entry, Mapping):
        return None
    fields = cast("Mapping[str, Any]", entry)
    description, status = fields.get("description"), fields.get("status")
    known = next((one for one in TodoStatus if one == status), None)
    if not isinstance(description, str) or not description.strip() or known is None:
        return None
    return Todo(" ".join(description.split())[:MAXIMUM_CHARACTERS], known)
