"""write_todos: state the plan of the task, which the user sees."""

from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.todo_list import MAXIMUM_CHARACTERS, MAXIMUM_TODOS, WRITE_TODOS, Todo, TodoStatus, checklist, summary
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, check_arguments
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure

_STATUSES = ", ".join(TodoStatus)
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "description": f"The whole list, at most {MAXIMUM_TODOS} entries. It replaces the one before.",
            "items": {
                "type": "object",
                "properties": {
                    "description": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": MAXIMUM_CHARACTERS,
                        "description": "What is to be done, in a few words.",
                    },
                    "status": {
                        "type": "string",
                        "enum": list(TodoStatus),
                        "description": f"One of {_STATUSES}. At most one entry is in_progress.",
                    },
                },
                "required": ["description", "status"],
            },
        },
    },
    "required": ["todos"],
}


class WriteTodos:
    """States the list of things to do."""

    name = WRITE_TODOS
    description = (
        "Shows the user your plan as a list of steps with their status. Use it for tasks of three steps or more: state "
        "the steps before you begin, and the whole list again whenever the status of a step changes or a step is "
        "added. Mark a step completed as soon as it is done and checked. Not for questions and small changes."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def describe(self, arguments: Arguments) -> str:
        """Return the state of the list in one line."""
        return summary(self._check(arguments))

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        self._check(arguments)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the list; a front that shows the task takes it from the call."""
        todos = self._check(arguments)
        left = sum(todo.status.is_open for todo in todos)
        note = "" if left else " Nothing is left to do."
        return ToolSucceeded(ToolOutput(text=checklist(todos) or "(empty)"), f"The user sees the list.{note}")

    def _check(self, arguments: Arguments) -> tuple[Todo, ...]:
        entries = check_arguments(self.name, PARAMETERS, arguments).objects("todos")
        if len(entries) > MAXIMUM_TODOS:
            raise _failure(f"expected at most {MAXIMUM_TODOS} entries, received {len(entries)}")
        todos: list[Todo] = []
        for number, entry in enumerate(entries):
            status = next((one for one in TodoStatus if one == entry.string("status")), None)
            if status is None:
                received = repr(entry.string("status")[:50])
                raise _failure(f"[{number}].status: expected one of {_STATUSES}, received {received}")
            text = " ".join(entry.string("description").split())
            if not text:
                raise _failure(f"[{number}].description: expected a text that is not blank")
            todos.append(Todo(text, status))
        if (busy := sum(todo.status is TodoStatus.IN_PROGRESS for todo in todos)) > 1:
            raise _failure(f"expected at most one entry that is in_progress, received {busy}")
        return tuple(todos)


def _failure(problem: str) -> ToolFailure:
    separator = "" if problem.startswith("[") else ": "
    return ToolFailure(f"{WRITE_TODOS}: todos{separator}{problem}", INVALID_ARGUMENTS)
