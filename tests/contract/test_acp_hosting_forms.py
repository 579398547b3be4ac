"""Forms of a hosted ACP agent as questions: filled in, answered wrongly, declined, cancelled, and refused."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.development_tool import FileDiff, GenericDetails, ToolCallStatus
from isthmus.events import TaskState
from support.acp_hosting import AcpHosting, acp_hosting, received

pytestmark = pytest.mark.anyio


@pytest.fixture
async def hosting(tmp_path: Path) -> AsyncGenerator[AcpHosting]:
    async with acp_hosting(tmp_path) as hosting:
        yield hosting


async def test_a_form_is_filled_in_by_another_client(hosting: AcpHosting) -> None:
    asked = await hosting.prompt("form")
    assert asked.state is TaskState.INPUT_REQUIRED, asked.view
    call = asked.question
    assert (call.tool_name, call.description) == ("elicitation", "Agent asks: Who are you?")
    assert call.input_parameters["requested_schema"]["required"] == ["name"]
    request = call.confirmation_request
    assert request is not None
    assert [option.id for option in request.options] == ["accept", "decline", "cancel"]
    assert isinstance(request.details, FileDiff)
    assert request.details.new_content.startswith("// The agent Agent wants to know the following.")
    done = await hosting.answer(asked, "accept", '{"name": "Ada", "age": 36}')
    assert done.state is TaskState.COMPLETED, done.view
    assert json.loads(done.text) == {"action": "accept", "content": {"name": "Ada", "age": 36}}
    assert done.call(call.tool_call_id).status is ToolCallStatus.SUCCEEDED
    assert received()[0]["params"]["clientCapabilities"]["elicitation"] == {"form": {}}


async def test_an_answer_that_does_not_fit_the_form_is_asked_for_again(hosting: AcpHosting) -> None:
    asked = await hosting.prompt("form")
    again = await hosting.answer(asked, "accept", '{"age": -1}')
    assert again.state is TaskState.INPUT_REQUIRED, again.view
    assert again.call(asked.question.tool_call_id).status is ToolCallStatus.FAILED
    request = again.question.confirmation_request
    assert request is not None
    assert isinstance(request.details, FileDiff)
    assert "// NOT ACCEPTED: name: a value is required" in request.details.new_content
    assert '"age": -1' in request.details.new_content
    done = await hosting.answer(again, "accept", '{"name": "Ada"}')
    assert json.loads(done.text) == {"action": "accept", "content": {"name": "Ada"}}


async def test_a_single_choice_is_answered_by_an_option(hosting: AcpHosting) -> None:
    asked = await hosting.prompt("color")
    request = asked.question.confirmation_request
    assert request is not None
    assert request.details == GenericDetails("Agent asks you:\n> Which color?")
    assert [option.name for option in request.options] == ["Red", "Blue", "Decline", "Dismiss"]
    done = await hosting.answer(asked, "choice-2")
    assert json.loads(done.text) == {"action": "accept", "content": {"color": "b"}}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_form_is_not_answered(hosting: AcpHosting, action: str) -> None:
    asked = await hosting.prompt("form")
    done = await hosting.answer(asked, action)
    assert (done.state, json.loads(done.text)) == (TaskState.COMPLETED, {"action": action})
    assert done.call(asked.question.tool_call_id).status is ToolCallStatus.CANCELLED


async def test_a_turn_that_asks_by_a_form_is_cancelled(hosting: AcpHosting) -> None:
    asked = await hosting.prompt("color")
    assert (await hosting.agent.cancel(asked.task_id)).state is TaskState.CANCELED
    again = await hosting.prompt("hello", asked.context_id)
    assert again.text.endswith("You said: hello")


async def test_pages_and_what_is_not_a_form_are_refused(hosting: AcpHosting) -> None:
    seen = await hosting.prompt("page")
    assert (seen.state, seen.text) == (TaskState.COMPLETED, "Refused.")
