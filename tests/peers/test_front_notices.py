"""Notices while the interactive front runs: printed above the typed text, in a real pseudo-terminal."""

import signal

import pytest

from support.front_terminal import FrontTerminal

PROMPT = r"(?m)^\u203a ?$"
CHOICES = r"1  Allow once"
NOTICE = r"(?m)^! custom commands: broken\.toml cannot be used$"
PLAIN = {"TERM": "dumb"}
"""A terminal whose lines cannot be edited."""


def test_a_notice_stands_above_the_prompt_and_what_is_typed_there(front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT).press("half a thought").wait_for("half a thought")
        terminal.signal(signal.SIGALRM).wait_for(NOTICE + r"\n(.*\n)?\u203a half a thought$")
        assert terminal.screen.count("half a thought") == 1
        terminal.press(" and the rest\r").wait_for(CHOICES)


def test_a_notice_before_the_first_prompt_leaves_that_prompt_a_line_of_its_own(front: FrontTerminal) -> None:
    with front("edit", "--early-notice") as terminal:
        terminal.wait_for(NOTICE).wait_for(PROMPT)


def test_a_notice_does_not_break_a_text_that_streams(front: FrontTerminal) -> None:
    with front("stream") as terminal:
        terminal.wait_for(PROMPT).press("hello\r").wait_for("first part").signal(signal.SIGALRM)
        terminal.signal(signal.SIGUSR2).wait_for(r"first part and the second part\.").wait_for(NOTICE).wait_for(PROMPT)


def test_a_notice_stands_above_the_choices_of_a_question(front: FrontTerminal) -> None:
    with front("edit") as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).signal(signal.SIGALRM)
        terminal.wait_for(rf"(?s){NOTICE}.*{CHOICES}").press("1").wait_for("All done")


def test_a_notice_on_a_plain_terminal_has_its_own_line_and_the_prompt_returns(front: FrontTerminal) -> None:
    with front("edit", environment=PLAIN) as terminal:
        terminal.wait_for(PROMPT).signal(signal.SIGALRM).wait_for(NOTICE + r"\n(.*\n)?\u203a ?$")
        terminal.press("do it\r").wait_for(r"answer \(1, 2, 3, e, t\):$").press("3\r").wait_for("not run")


@pytest.mark.parametrize("environment", [{}, PLAIN])
def test_a_question_says_that_its_diff_is_open_in_an_editor(environment: dict[str, str], front: FrontTerminal) -> None:
    said = r"(?m)^  Also open in Neovim; the first answer counts\.$"
    with front("edit", environment=environment) as terminal:
        terminal.wait_for(r"\u203a").press("do it\r").wait_for("Allow once")
        # The options are drawn again below it.
        terminal.signal(signal.SIGPROF).wait_for(said if environment else rf"(?s){said}.*{CHOICES}")
        terminal.press("1\r").wait_for("All done")


def test_a_question_whose_diff_was_open_in_an_editor_before_says_so(front: FrontTerminal) -> None:
    with front("two") as terminal:
        terminal.wait_for(PROMPT).signal(signal.SIGPROF).press("do it\r").wait_for("Also open in Neovim").wait_for(
            CHOICES
        )
        terminal.press("3").wait_for(r"\$ make test").wait_for(CHOICES)
        # No editor shows the second one.
        assert terminal.screen.count("Also open in Neovim") == 1
