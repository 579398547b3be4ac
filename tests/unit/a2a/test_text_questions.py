"""Answers in plain words: what counts as an answer, and what leaves a question open."""

import pytest

from isthmus.a2a.protocol.text_questions import answer_in_text, is_no_answer
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    GenericDetails,
    ToolCall,
    ToolCallStatus,
)

OPTIONS = (
    ConfirmationOption("proceed_once", "Allow once"),
    ConfirmationOption("proceed_always_tool", "Always allow"),
    ConfirmationOption("cancel", "Reject"),
)


def call(*options: ConfirmationOption, tool: str = "run_shell_command") -> ToolCall:
    request = ConfirmationRequest(options or OPTIONS, execute_details=ExecuteDetails("make"))
    return ToolCall("a", ToolCallStatus.PENDING, tool, {}, confirmation_request=request)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        *((text, "proceed_once") for text in ("yes", "Yes", "YES.", "ok", " OK! ", "y", "Sure", "allow once", "ja")),
        *((text, "cancel") for text in ("no", "No.", "n", "reject", "Reject", "cancel", "nein", "\u4e0d")),
        ("always allow", "proceed_always_tool"),
        *((text, None) for text in ("yes please do it", "maybe", "", "what does it do?", "2", "no, use pnpm")),
    ],
)
def test_plain_words_answer_the_only_question(text: str, option: str | None) -> None:
    answer = answer_in_text(text, [call()])
    assert (answer and answer.selected_option_id) == option
    assert answer_in_text(text, [call(), call()]) is None


def test_a_yes_is_no_answer_where_nothing_can_be_allowed_once() -> None:
    choices = (ConfirmationOption("choice-1", "Blue"), ConfirmationOption("cancel", "No choice"))
    assert answer_in_text("yes", [call(*choices)]) is None
    assert answer_in_text("yes", [call(*OPTIONS, tool="ask_user")]) is None


def test_options_of_hosted_agents_are_found_by_their_kind() -> None:
    options = (
        ConfirmationOption("x1", "Do it", kind="allow_once"),
        ConfirmationOption("x2", "Leave it", kind="reject_once"),
    )
    for text, option in (("yes", "x1"), ("no", "x2")):
        answer = answer_in_text(text, [call(*options)])
        assert answer is not None
        assert answer.selected_option_id == option


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        *((text, True) for text in ("maybe", "yes please do it", "", "what does it do?", "42", "yes and no")),
        *((text, False) for text in ("no, use pnpm", "No: too slow", "/help", "reject it and use make")),
    ],
)
def test_words_that_fit_no_option_leave_the_question_open_but_a_reason_does_not(text: str, is_open: bool) -> None:
    assert is_no_answer(text, [call()]) == is_open
    assert is_no_answer(text, [call(), call()]) == is_open
    assert not is_no_answer(text, [])
    assert not is_no_answer(text, [call(tool="ask_user")])
    generic = ConfirmationRequest(OPTIONS, generic_details=GenericDetails("Go on?"))
    asked = ToolCall("b", ToolCallStatus.PENDING, "x", {}, confirmation_request=generic)
    assert is_no_answer(text, [asked]) == is_open
