"""The plan of a task: read from its calls, folded into its view, and stated by the tool."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.client import Delivery
from isthmus.development_tool import ToolCall, ToolCallStatus, ToolOutput
from isthmus.events import ToolCallUpdate
from isthmus.task_view import TaskView
from isthmus.todo_list import MAXIMUM_TODOS, Todo, TodoStatus, checklist, summary, todos_of
from isthmus.tools.port.base import ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.write_todos import WriteTodos
from support.tool_calls import result_of, tool_context

pytestmark = pytest.mark.anyio

ENTRIES = [
    {"description": "Read", "status": "completed"},
    {"description": "Edit\nit", "status": "in_progress"},
    {"description": "Ask", "status": "blocked"},
    {"description": "Guess", "status": "cancelled"},
    {"description": "Test", "status": "pending"},
]
TODOS = (
    Todo("Read", TodoStatus.COMPLETED),
    Todo("Edit it", TodoStatus.IN_PROGRESS),
    Todo("Ask", TodoStatus.BLOCKED),
    Todo("Guess", TodoStatus.CANCELLED),
    Todo("Test"),
)


def call_of(todos: Any, status: ToolCallStatus = ToolCallStatus.SUCCEEDED, name: str = "write_todos") -> ToolCall:
    return ToolCall("c1", status, name, {"todos": todos})


def test_the_list_is_read_from_the_arguments_of_the_call() -> None:
    assert todos_of(call_of(ENTRIES)) == TODOS
    assert todos_of(call_of([])) == ()
    assert summary(TODOS) == "1 of 4 done, now: Edit it"
    assert summary(()) == "nothing to do"
    assert checklist(TODOS) == "- [x] Read\n- [~] Edit it\n- [!] Ask\n- [-] Guess\n- [ ] Test"


@pytest.mark.parametrize(
    "todos",
    [None, "x", {}, [1], [{}], [{"description": "a"}], [{"description": " ", "status": "pending"}], [[]],
     [{"description": "a", "status": "done"}], [{"description": 1, "status": "pending"}]],
)  # fmt: skip
def test_what_is_not_a_list_of_todos_is_none(todos: Any) -> None:
    assert todos_of(call_of(todos)) is None
    assert todos_of(call_of(ENTRIES, name="todo_write")) is None


def test_a_list_from_another_agent_is_cut_at_the_limits() -> None:
    todos = todos_of(call_of([{"description": "x" * 10_000, "status": "pending"}] * 1000))
    assert todos is not None
    assert len(todos) == MAXIMUM_TODOS
    assert len(todos[0].description) == 500


def test_a_task_has_the_list_of_the_last_call_that_succeeded() -> None:
    view = TaskView()
    assert view.todos == ()
    for seq, call in enumerate(
        (
            call_of(ENTRIES),
            ToolCall("c2", ToolCallStatus.FAILED, "write_todos", {"todos": []}),
            ToolCall("c3", ToolCallStatus.SUCCEEDED, "read_file", {"todos": []}),
        ),
        1,
    ):
        view.apply(Delivery(seq, 0.0, ToolCallUpdate(call)))
    assert view.todos == TODOS


async def test_the_tool_shows_the_list_and_tells_the_model_little(workspace: Path) -> None:
    result = await result_of(WriteTodos(), tool_context(workspace), todos=ENTRIES)
    assert isinstance(result, ToolSucceeded)
    assert result.output == ToolOutput(text="- [x] Read\n- [~] Edit it\n- [!] Ask\n- [-] Guess\n- [ ] Test")
    assert result.for_model == "The user sees the list."
    result = await result_of(WriteTodos(), tool_context(workspace), todos=ENTRIES[:1])
    assert isinstance(result, ToolSucceeded)
    assert result.for_model == "The user sees the list. Nothing is left to do."


@pytest.mark.parametrize(
    ("todos", "message"),
    [
        ([ENTRIES[1], ENTRIES[1]], "todos: expected at most one entry that is in_progress, received 2"),
        ([{"description": "a", "status": "done"}], "todos[0].status: expected one of pending, in_progress,"),
        ([{"description": " ", "status": "pending"}], "todos[0].description: expected a text that is not blank"),
        ([ENTRIES[0]] * 51, "todos: expected at most 50 entries, received 51"),
        ("Read", "todos: expected an array of objects, received str 'Read'"),
    ],
)
async def test_an_invalid_list_is_refused_with_what_was_expected(workspace: Path, todos: Any, message: str) -> None:
    with pytest.raises(ToolFailure, match=r"^write_todos: ") as caught:
        await WriteTodos().propose({"todos": todos}, tool_context(workspace))
    assert message in str(caught.value)
