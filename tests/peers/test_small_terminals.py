"""Questions in a small terminal: each choice can be seen at any size, or no answer is taken and the window is named."""

import json
from pathlib import Path

import pytest

from support.front_terminal import FrontTerminal

PROMPT = r"(?m)^\u203a ?$"
NAMES = ("Allow once", "Always allow", "Reject", "Edit first", "Reject and tell")


def answers(record: Path) -> list[str]:
    entries = [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.exists() else []
    return [entry["answer"] for entry in entries if "answer" in entry]


@pytest.mark.parametrize("rows", [8, 9, 10, 12, 14, 24])
@pytest.mark.parametrize("columns", [40, 80])
def test_each_choice_is_on_the_screen(front: FrontTerminal, tmp_path: Path, rows: int, columns: int) -> None:
    record = tmp_path / "record.jsonl"
    with front("edit", "--record", str(record), rows=rows, columns=columns) as terminal:
        terminal.wait_for(PROMPT).press("do it\r")
        for name in NAMES:
            terminal.wait_for(name)
        for key in "123et":
            terminal.wait_for(rf"(?m)(^| ) *{key}  \S")
        terminal.press("n").wait_for("not run")
    assert answers(record) == ["cancel"]


def test_a_question_with_many_choices_says_that_the_window_is_too_small(front: FrontTerminal, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with front("many", "--record", str(record), rows=4, columns=40) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for("window is too small to answer")
        terminal.press("12").wait_for("\u203a 12")
        terminal.press("\r").wait_until_gone("\u203a 12")
        assert answers(record) == []
        terminal.resize(80, 30).wait_for(r"15  Reject").press("12\r").wait_for("Chosen")
    assert answers(record) == ["option_12"]


def test_the_choices_fit_the_window_after_each_change_of_its_size(front: FrontTerminal, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with front("edit", "--record", str(record), rows=30) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for("Reject and tell")
        terminal.resize(80, 8).wait_for("t  Reject and tell").wait_for("1  Allow once")
        terminal.resize(80, 30).wait_for("what to do instead")
        terminal.press("1").wait_for("All done")
    assert answers(record) == ["proceed_once"]
