"""Menus without a terminal: keys go through prompt_toolkit's input, and what is drawn is looked at as text."""

from dataclasses import replace

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import fragment_list_to_text, to_formatted_text
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.shortcuts import PromptSession

from isthmus.development_tool import ConfirmationOption
from isthmus.terminal.interactive.plan_menu import PLAN_CHOICES, PLAN_LINES
from isthmus.terminal.prompt.menu_prompts import ChoicePrompt, LinePrompt
from isthmus.terminal.questions.marking import Marking
from isthmus.terminal.questions.questions import CallQuestion, question_of
from isthmus.terminal.signals import Interrupted
from support.front_program import edit_call, shell_call

pytestmark = pytest.mark.anyio

UP, DOWN, ENTER = "\x1b[A", "\x1b[B", "\r"


def shown(menu: ChoicePrompt | LinePrompt) -> str:
    return fragment_list_to_text(to_formatted_text(menu.message()))


async def typed(keys: KeyBindings, text: str) -> str:
    """Return the line that a prompt with these keys returns after these keys were pressed."""
    with create_pipe_input() as pipe:
        pipe.send_text(text)
        session: PromptSession[str] = PromptSession(
            key_bindings=keys, input=pipe, output=DummyOutput(), interrupt_exception=Interrupted
        )
        return await session.prompt_async("")


def choices(question: CallQuestion, columns: int = 80, rows: int = 24) -> ChoicePrompt:
    return ChoicePrompt(question, ">", "", lambda: Size(rows=rows, columns=columns))


def plan() -> LinePrompt:
    return LinePrompt(PLAN_LINES, "plan: ", ">", lambda: Size(rows=24, columns=50), PLAN_CHOICES)


def many_options() -> CallQuestion:
    call = shell_call()
    request = call.confirmation_request
    assert request is not None
    options = tuple(ConfirmationOption(f"option_{number}", f"Option {number}") for number in range(1, 13))
    return question_of(replace(call, confirmation_request=replace(request, options=options)))


@pytest.mark.parametrize(
    ("keys", "answer"), [(DOWN + ENTER, "1"), (DOWN * 2 + ENTER, "2"), (UP + ENTER, "t"), (ENTER + "3", "3")]
)
async def test_arrows_mark_a_choice_that_enter_chooses(keys: str, answer: str) -> None:
    assert await typed(choices(question_of(edit_call())).key_bindings(), keys) == answer


async def test_enter_without_a_mark_chooses_nothing_and_says_which_keys_there_are() -> None:
    menu = choices(question_of(edit_call()))
    assert "arrow key" not in shown(menu)
    assert await typed(menu.key_bindings(), ENTER + "n") == "n"
    assert "one of 1, 2, 3, e, t, or an arrow key and Enter" in shown(menu)


async def test_without_a_free_row_the_keys_are_named_beside_the_prompt() -> None:
    menu = choices(question_of(edit_call()), rows=7)
    assert "what to do instead" in shown(menu)
    await typed(menu.key_bindings(), ENTER + "n")
    assert "what to do instead" in shown(menu)
    assert shown(menu).endswith("\n  a key above, or an arrow key and Enter  > ")


async def test_the_marked_choice_has_a_sign_with_and_without_descriptions() -> None:
    for rows in (24, 9):
        menu = choices(question_of(edit_call()), rows=rows)
        await typed(menu.key_bindings(), DOWN * 2 + "n")
        assert "> 2  Always allow" in shown(menu)
        assert "  1  Allow once" in shown(menu)


async def test_with_more_choices_than_digits_arrows_work_beside_typed_numbers() -> None:
    assert await typed(choices(many_options()).key_bindings(), UP + ENTER) == "12"
    assert await typed(choices(many_options()).key_bindings(), DOWN + "11" + ENTER) == "11"


async def test_in_a_window_that_is_too_small_no_key_chooses() -> None:
    menu = choices(many_options(), columns=40, rows=4)
    with pytest.raises(EOFError):
        await typed(menu.key_bindings(), "12" + ENTER + DOWN + ENTER + "\x04")


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("1", "1"),
        ("3", "3"),
        ("use less\r", "use less"),
        ("x 2\r", "x 2"),
        (DOWN + ENTER, "1"),
        (ENTER, ""),
        ("7\r", "7"),
    ],
)
async def test_a_menu_takes_a_digit_at_once_and_words_with_enter(keys: str, answer: str) -> None:
    assert await typed(plan().key_bindings(), keys) == answer


async def test_escape_leaves_a_menu() -> None:
    with pytest.raises(Interrupted):
        await typed(plan().key_bindings(), "\x1b")


def test_a_mark_goes_round() -> None:
    marking = Marking(3)
    seen: list[int | None] = [marking.at]
    for move in (marking.up, marking.down, marking.down, marking.up, marking.up):
        move()
        seen.append(marking.at)
    assert seen == [None, 2, 0, 1, 0, 2]
    none = Marking(0)
    none.down()
    assert none.at is None
