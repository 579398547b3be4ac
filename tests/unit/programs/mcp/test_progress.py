"""Progress of a tool call, as an MCP client hears of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import TaskState, ToolCallUpdate
from isthmus.programs.mcp.progress import MAXIMUM_EVENTS, ClientProgress, what_runs
from isthmus.task_view import CallView, TaskView

pytestmark = pytest.mark.anyio

CALL = ToolCall("1", ToolCallStatus.EXECUTING, "run_shell_command", {}, "make")


class Sent:
    """Keeps what was sent, and lets a test wait for more."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self._news = asyncio.Event()

    async def send(self, message: Any) -> None:
        self.messages.append(message["params"])
        self._news.set()

    async def more(self) -> Any:
        """Return the next message; fail if none comes."""
        self._news.clear()
        await asyncio.wait_for(self._news.wait(), 30)
        return self.messages[-1]


async def test_the_beat_goes_on_after_the_last_event_that_is_told() -> None:
    sent = Sent()
    progress = ClientProgress(sent.send, "token", 0.01)
    for number in range(MAXIMUM_EVENTS + 5):
        await progress.say(str(number))
    assert len(sent.messages) == MAXIMUM_EVENTS
    async with progress.beating(lambda: "thinking"):
        for number in range(1, 4):
            expected = {"progressToken": "token", "progress": MAXIMUM_EVENTS + number, "message": "thinking"}
            assert await sent.more() == expected


async def test_a_client_that_wants_no_progress_hears_none() -> None:
    sent = Sent()
    progress = ClientProgress(sent.send, None, 0.0)
    async with progress.beating(lambda: "thinking"):
        await progress.event(ToolCallUpdate(CALL))
        await asyncio.sleep(0)
    assert sent.messages == []


async def test_each_call_that_begins_is_told_once() -> None:
    sent = Sent()
    progress = ClientProgress(sent.send, 1)
    for call in (replace(CALL, status=ToolCallStatus.PENDING), CALL, CALL):
        await progress.event(ToolCallUpdate(call))
    assert [message["message"] for message in sent.messages] == ["run_shell_command: make"]


@pytest.mark.parametrize(
    ("state", "calls", "expected"),
    [
        (TaskState.SUBMITTED, (), "waits to begin"),
        (TaskState.WORKING, (), "thinking"),
        (TaskState.WORKING, (CALL,), "run_shell_command: make"),
        (TaskState.WORKING, (CALL, replace(CALL, tool_call_id="2")), "; ".join(["run_shell_command: make"] * 2)),
        (TaskState.WORKING, (replace(CALL, status=ToolCallStatus.SUCCEEDED),), "thinking"),
        (TaskState.INPUT_REQUIRED, (CALL,), "waits for the user's answer"),
    ],
)
def test_a_task_is_told_by_what_runs(state: TaskState, calls: tuple[ToolCall, ...], expected: str) -> None:
    view = TaskView(state, calls={call.tool_call_id: CallView(call) for call in calls})
    assert what_runs(view) == expected
