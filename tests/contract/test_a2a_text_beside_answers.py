"""A text beside a ToolCallConfirmation in one message: the call is answered, and the model reads the text."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import ToolCallStatus
from isthmus.events import ConfirmationAccepted, Prompt, TaskState
from support.a2a_serving import RawClient, allow, answer, prompt, serving
from support.a2a_v1 import Client, said
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say
from support.subagents import Delegation, TwoModels, delegation
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

WAIT = "until [ -e go ]; do read -t 0.05 <> <(:) || true; done; echo went"
"""A command that runs until the test makes the file ``go``."""
TEXT = "And then look at the tests."


@pytest.fixture
def models() -> TwoModels:
    return TwoModels()


@pytest.fixture
def wire(models: TwoModels) -> Generator[GeminiWire]:
    with GeminiWire(models) as server:
        yield server


async def asked(raw: RawClient, at: Delegation, models: TwoModels) -> str:
    """Return the task whose command waits for an answer."""
    models.agent = [
        Reply.of(Call("run_shell_command", {"command": WAIT}, id="call-1")),
        Reply.of(Say("First.")),
        Reply.of(Say("Second.")),
    ]
    return (await raw.result("message/send", prompt("Begin.", at.workspace)))["id"]


def with_text(params: dict[str, Any], *, first: bool = False) -> dict[str, Any]:
    parts = params["message"]["parts"]
    text = {"kind": "text", "text": TEXT}
    return {"message": {**params["message"], "parts": [text, *parts] if first else [*parts, text]}}


async def was_answered(at: Delegation, task_id: str) -> bool:
    """Return whether the answer is in the journal, with the text."""
    kept = [each.event for each in await at.engine.journal.events(task_id, 0, 1000)]
    return any(
        isinstance(event, ConfirmationAccepted) and event.beside is not None and event.beside.text == TEXT
        for event in kept
    )


def read_by_the_model(models: TwoModels) -> str:
    return str(models.asked[-1][1]["contents"])


@pytest.mark.parametrize("first", [True, False])
async def test_the_call_runs_and_the_model_reads_the_text_after_it(
    tmp_path: Path, wire: GeminiWire, models: TwoModels, first: bool
) -> None:
    async with delegation(tmp_path, wire) as at, serving(at.engine.for_user("")) as raw:
        task_id = await asked(raw, at, models)
        params = with_text(answer(task_id, allow("call-1")), first=first)
        stream = asyncio.create_task(raw.stream("message/stream", params))
        await eventually_async(lambda: was_answered(at, task_id), what="the text is kept with the answer")
        (at.workspace / "go").touch()
        events = await stream
        view = await at.view(task_id)
    states = [event.data["status"] for event in events if event.kind == "TOOL_CALL_UPDATE"]
    assert (states[0], states[-1]) == ("EXECUTING", "SUCCEEDED")
    assert (events[-1].state, events[-1].result["final"]) == ("completed", True)
    assert len(models.asked) == 2
    assert "went" in read_by_the_model(models)
    assert TEXT in read_by_the_model(models)
    assert [each.text for each in view.prompts] == ["Begin.", TEXT]


async def test_the_whole_message_may_be_sent_again(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    async with delegation(tmp_path, wire) as at, serving(at.engine.for_user("")) as raw:
        task_id = await asked(raw, at, models)
        (at.workspace / "go").touch()
        params = with_text(answer(task_id, allow("call-1")))
        for _ in range(2):
            task = await raw.result("message/send", params)
            assert task["status"]["state"] == "completed"
        kept = [each.event for each in await at.engine.journal.events(task_id, 0, 1000)]
    assert [event.text for event in kept if isinstance(event, Prompt)] == ["Begin.", TEXT]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_refusal_with_its_reason_in_version_1(
    tmp_path: Path, wire: GeminiWire, models: TwoModels, binding: str
) -> None:
    async with delegation(tmp_path, wire) as at, serving(at.engine.for_user("")) as raw:
        task_id = await asked(raw, at, models)
        params = said("No, use make.", taskId=task_id)
        chosen = {"tool_call_id": "call-1", "selected_option_id": "cancel"}
        params["message"]["parts"].append({"data": chosen})
        task = (await Client(raw, binding).call("SendMessage", params))["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        view = await at.view(task_id)
    assert [each.call.status for each in view.calls.values()] == [ToolCallStatus.CANCELLED]
    assert "No, use make." in read_by_the_model(models)


async def test_a_wrong_answer_leaves_the_question_open_and_the_text_unread(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    async with delegation(tmp_path, wire) as at, serving(at.engine.for_user("")) as raw:
        task_id = await asked(raw, at, models)
        wrong = {"tool_call_id": "call-1", "selected_option_id": "none"}
        error = await raw.error("message/send", with_text(answer(task_id, wrong)))
        assert error["code"] == -32602
        snapshot = await at.engine.get(task_id)
    assert snapshot.state is TaskState.INPUT_REQUIRED
    assert len(models.asked) == 1
