"""Prompts in a window whose size changes: none is left behind where the terminal wraps its lines anew."""

import re

from support.front_terminal import FrontTerminal
from support.pty_program import PtyProgram
from support.waiting import eventually

PROMPT = r"(?m)^\u203a ?$"
TYPED = "a message that is longer than the narrow windows of this test, in which it takes several rows"
SIZES = ((50, 24), (120, 40), (44, 20), (80, 24))
CHOICES = ("1  Allow once", "2  Always allow", "t  Reject and tell")


def test_a_prompt_is_there_once_after_each_change_of_the_width(front: FrontTerminal) -> None:
    with front("edit", rows=24) as terminal:
        terminal.wait_for(PROMPT).press(TYPED).wait_for("several rows")
        for columns, rows in SIZES:
            terminal.resize(columns, rows, wraps_anew=True).press("!").wait_for("!")
            terminal.press("\x7f").wait_until_gone("!")
            assert len(re.findall(r"(?m)^\u203a ", terminal.screen)) == 1, terminal.screen
        terminal.press("\r").wait_for("1  Allow once")
        for at, (columns, rows) in enumerate(SIZES):
            terminal.resize(columns, rows, wraps_anew=True).press("\x1b[B")
            _wait_until_marked(terminal, f"{at + 1} " if at < 3 else "e ")
            for choice in CHOICES:
                assert terminal.screen.count(choice) == 1, terminal.screen
        terminal.press("3").wait_for("not run")


def _wait_until_marked(terminal: PtyProgram, key: str) -> None:
    """Wait until the line of this choice is marked, and the cursor back at the prompt, where a drawing ends."""

    def is_drawn() -> bool:
        screen = terminal.screen
        assert re.search(rf"(?m)^ *\u203a {key}", screen), screen
        assert terminal.before_cursor[1] == "  \u203a ", screen
        return True

    eventually(is_drawn, 30, what=f"the mark at {key!r}")
