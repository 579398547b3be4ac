"""The agent's own questions in a conversation on plain lines: a text, several choices, and hostile ones."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    FileDiff,
    GenericDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.events import ConfirmationAccepted, TextContent
from isthmus.terminal.questions.questions import question_of
from support.conversation import Conversation
from support.memory_agent import Ask, MemoryAgent

pytestmark = pytest.mark.anyio

SEND, NONE = ConfirmationOption("proceed_once", "Send"), ConfirmationOption("cancel", "None of these")
FEATURES = tuple(ConfirmationOption(f"choice_{number}", name) for number, name in enumerate(("Auth", "Export"), 1))
TEXT = {"question": "Which name?", "header": "Name", "type": "text", "placeholder": "short"}
SEVERAL = {
    "question": "Which features?",
    "multiSelect": True,
    "options": [{"label": "Auth", "description": "Log in"}, {"label": "Export"}],
}
DOCUMENT = FileDiff("answer.json", "/w/answer.json", '// > Which?\n{"answer": null}')


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


def call(asked: dict[str, Any], *options: ConfirmationOption, document: FileDiff | None = DOCUMENT) -> ToolCall:
    request = ConfirmationRequest.of(options, document or GenericDetails("?"))
    return ToolCall("c1", ToolCallStatus.PENDING, "ask_user", {"questions": [asked]}, confirmation_request=request)


async def answered(conversation: Conversation, asked: ToolCall, *lines: str) -> tuple[str, object]:
    agent = MemoryAgent(lambda _: [Ask((asked,)), TextContent("t", "All done.")])
    assert await conversation.run(agent, "go", *lines) == 0
    turn = await agent.follow((await agent.tasks())[0].task_id, 0)
    events = [delivery.event async for delivery in turn.deliveries]
    (answer,) = [event.confirmation for event in events if isinstance(event, ConfirmationAccepted)]
    details = answer.file_details
    return answer.selected_option_id, json.loads(details.new_content)["answer"] if details is not None else None


async def test_a_text_is_typed_and_sent(conversation: Conversation) -> None:
    assert await answered(conversation, call(TEXT, SEND, NONE), "f", "Zephyr") == ("proceed_once", "Zephyr")
    for shown in ("? Name\n    Which name?\n", "f  Answer", "short", "Name: ", "\u203a Zephyr\n", "All done."):
        assert shown in conversation.text
    assert "1  Send" not in conversation.text
    assert "null" not in conversation.text


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("f", "1, export"), ("proceed_once", ["Auth", "Export"])),
        (("f", "3", "2"), ("proceed_once", ["Export"])),
        (("2",), ("choice_2", None)),
        (("cancel",), ("cancel", None)),
    ],
)
async def test_several_are_chosen_by_number_or_name_and_one_or_none_at_once(
    conversation: Conversation, lines: tuple[str, ...], expected: tuple[str, object]
) -> None:
    assert await answered(conversation, call(SEVERAL, *FEATURES, SEND, NONE), *lines) == expected
    assert "f  Choose several" in conversation.text


def test_a_question_whose_agent_has_no_form_keeps_all_its_options() -> None:
    for asked in (TEXT, SEVERAL, {}, {"question": 5}):
        keys = [choice.option_id for choice in question_of(call(asked, SEND, NONE, document=None)).choices]
        assert keys == ["proceed_once", "cancel", None]


async def test_hostile_words_of_a_question_do_not_control_the_terminal(conversation: Conversation) -> None:
    hostile = "a\x1b[2J\u202eb"
    asked = {"question": hostile, "header": hostile, "type": "text", "placeholder": hostile}
    document = FileDiff("answer.json", "/w/answer.json", hostile)
    assert (await answered(conversation, call(asked, SEND, NONE, document=document), "f", "x"))[1] == "x"
    assert not {"\x1b", "\u202e"} & set(conversation.text)


def test_the_choices_that_are_shown_are_numbered_without_gaps() -> None:
    question = question_of(call(SEVERAL, *FEATURES, SEND, NONE))
    keys = [choice.key for choice in question.choices if choice.key.isdecimal()]
    assert keys == [str(number) for number in range(1, len(keys) + 1)]
