"""Text that is typed while the agent works, and what becomes of it."""

import pytest

from isthmus.development_tool import ConfirmationRequest, ToolCall, ToolCallStatus
from isthmus.terminal.questions.questions import question_of
from isthmus.terminal.questions.typed_ahead import TypedAhead, TypedKey, WorkKey
from support.agents import OPTIONS


def typed(text: str) -> TypedAhead:
    ahead = TypedAhead()
    ahead.take([TypedKey("c-m" if letter == "\r" else letter, letter) for letter in text])
    return ahead


def tab(ahead: TypedAhead) -> list[WorkKey]:
    return ahead.take([TypedKey("c-i", "\t")])


def test_tab_sends_all_that_was_typed_and_shows_it_until_it_has_arrived() -> None:
    ahead = typed("one\rtwo")
    assert tab(ahead) == [WorkKey.STEER]
    assert ahead.take_steering() == "one\ntwo"
    assert (ahead.sent, ahead.queue, ahead.draft) == (["one\ntwo"], [], "")
    ahead.arrived("something else")
    assert ahead.sent == ["one\ntwo"]
    ahead.arrived("one\ntwo")
    assert ahead.sent == []


def test_tab_without_text_does_nothing() -> None:
    assert tab(typed("  ")) == []
    assert tab(typed("")) == []


def test_what_was_not_taken_waits_for_the_end_before_the_others() -> None:
    ahead = typed("now")
    assert ahead.take_steering() == "now"
    ahead.take([TypedKey(letter, letter) for letter in "later"] + [TypedKey("c-m", "\r")])
    ahead.came_back("now")
    assert (ahead.sent, ahead.queue) == ([], ["now", "later"])


def test_after_a_turn_that_went_otherwise_everything_is_in_the_draft() -> None:
    ahead = typed("now")
    ahead.take_steering()
    ahead.take([TypedKey("x", "x"), TypedKey("c-m", "\r"), TypedKey("y", "y")])
    ahead.unqueue()
    assert (ahead.draft, ahead.queue, ahead.sent) == ("now\nx\ny", [], [])


ESCAPE = TypedKey("escape", "\x1b")


@pytest.mark.parametrize("behind", [[], [TypedKey("a", "a")], [TypedKey("c-m", "\r")]], ids=["end", "letter", "Enter"])
def test_escape_twice_in_one_read_interrupts_and_is_not_alt(behind: list[TypedKey]) -> None:
    """Two presses in a hurry, or over a slow line, mean the same as one."""
    effects = TypedAhead().take([ESCAPE, ESCAPE, *behind])
    assert effects == [WorkKey.INTERRUPT] * (1 if behind else 2)


def test_escape_before_another_key_of_the_same_read_is_that_key_with_alt() -> None:
    ahead = typed("one")
    assert ahead.take([ESCAPE, TypedKey("c-m", "\r")]) == []
    assert (ahead.draft, ahead.queue) == ("one\n", [])
    assert ahead.take([ESCAPE]) == [WorkKey.INTERRUPT]


def test_what_waits_and_looks_like_an_answer_is_not_sent_after_a_question_came() -> None:
    ahead = typed("y\rplease go on\rn\r")
    call = ToolCall("c", ToolCallStatus.PENDING, "touch", {}, confirmation_request=ConfirmationRequest(OPTIONS))
    assert (
        ahead.drop_answers(question_of(call))
        == "too early for an answer, dropped: y; too early for an answer, dropped: n"
    )
    assert (ahead.queue, ahead.draft) == (["please go on"], "")
