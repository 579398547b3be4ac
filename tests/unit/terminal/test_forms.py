"""A server's form in a conversation on plain lines."""

import json
import os
import signal
from collections.abc import Iterator, Sequence

import pytest

from isthmus.client import PromptMessage
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    FileDiff,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.events import ConfirmationAccepted, TextContent
from isthmus.forms.requested_schema import form_of, requested_schema
from support.conversation import Conversation
from support.memory_agent import Ask, MemoryAgent, Step

pytestmark = pytest.mark.anyio

FORM = form_of(
    {
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer", "minimum": 1},
            "pet": {"type": "string", "enum": [f"pet {number}" for number in range(20)], "default": "pet 3"},
        },
        "required": ["name"],
    }
)
KEYS = "answer (1, 2, 3, f, e):"


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


def asks(_: PromptMessage) -> Sequence[Step]:
    options = tuple(ConfirmationOption(option, option) for option in ("accept", "decline", "cancel"))
    document = FileDiff("s-request.json", "/w/s-request.json", FORM.document("s", "Who are you?"))
    request = ConfirmationRequest(options, file_edit_details=document)
    about = {"server": "s", "requested_schema": requested_schema(FORM)}
    call = ToolCall("c?1", ToolCallStatus.PENDING, "elicitation", about, confirmation_request=request)
    return [Ask((call,)), TextContent("t", "All done.")]


async def answers_of(agent: MemoryAgent) -> list[ToolCallConfirmation]:
    turn = await agent.follow((await agent.tasks())[0].task_id, 0)
    events = [delivery.event async for delivery in turn.deliveries]
    return [event.confirmation for event in events if isinstance(event, ConfirmationAccepted)]


async def test_each_value_is_asked_for_and_the_whole_is_sent_only_when_that_is_chosen(
    conversation: Conversation,
) -> None:
    agent = MemoryAgent(asks)
    assert await conversation.run(agent, "go", "f", "", "Ada", "0", "36", "", "f", "", "37", "-", "accept") == 0
    for shown in (
        "1 of 3: Your name (required)", "A value is required", "0 is less than the minimum of 1", "Your name [Ada]: ",
        "age [36]: ", "pet [pet 3]: ", "f  Fill in again", "All done.",
    ):  # fmt: skip
        assert shown in conversation.text
    (answer,) = await answers_of(agent)
    assert answer.selected_option_id == "accept"
    assert answer.file_details is not None
    assert json.loads(answer.file_details.new_content) == {"name": "Ada", "age": 37, "pet": None}


async def test_ctrl_c_while_a_form_is_filled_in_goes_back_to_the_choices(conversation: Conversation) -> None:
    agent = MemoryAgent(asks)
    running = conversation.start(agent)
    conversation.type("go")
    await conversation.wait_for(KEYS)
    conversation.type("f")
    await conversation.wait_for("Your name: ")
    conversation.type("Ada")
    await conversation.wait_for("age: ")
    os.kill(os.getpid(), signal.SIGINT)
    await conversation.wait_for("Nothing was changed.")
    conversation.type("decline")
    await conversation.wait_for("All done.")
    conversation.type("/quit")
    assert await running == 0
    assert [(answer.selected_option_id, answer.file_details) for answer in await answers_of(agent)] == [
        ("decline", None)
    ]


async def test_an_answer_elsewhere_ends_the_filling_in(conversation: Conversation) -> None:
    agent = MemoryAgent(asks)
    running = conversation.start(agent)
    conversation.type("go")
    await conversation.wait_for(KEYS)
    conversation.type("f")
    await conversation.wait_for("Your name: ")
    task = (await agent.tasks())[0]
    await agent.answer(task.task_id, [ToolCallConfirmation("c?1", "decline")], answered_by="neovim")
    await conversation.wait_for("answered in neovim")
    await conversation.wait_for("All done.")
    conversation.type("/quit")
    assert await running == 0
