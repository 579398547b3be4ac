"""Keys pressed before a question takes answers answer nothing: in a real pseudo-terminal, on a scripted agent."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from support.front_terminal import FrontTerminal
from support.waiting import eventually

PROMPT = r"(?m)^\u203a ?$"
QUESTION = r"\? Change greeting\.py"
CHOICES = r"1  Allow once"
LONG_PAUSE = ("--pause", "60")
"""Seconds within which even a busy machine presses a key; over when the program gets PAUSE_IS_OVER."""
PAUSE_IS_OVER = signal.SIGVTALRM
PLAIN = {"TERM": "dumb"}
"""A terminal whose lines cannot be edited."""


def answers(record: Path) -> list[str]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    return [line["answer"] for line in lines if "answer" in line]


def prompts(record: Path) -> list[str]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    return [line["prompt"] for line in lines if "prompt" in line]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


@pytest.mark.parametrize("key", ["1", "y", "2", "11"])
def test_a_key_that_comes_with_the_question_is_dropped_and_said(record: Path, key: str, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record), *LONG_PAUSE) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(QUESTION).press(key).wait_for(f"not an answer yet: {key}")
        terminal.signal(PAUSE_IS_OVER).wait_for(CHOICES).wait_for(rf"too early for an answer, dropped: {key}")
        terminal.press("3").wait_for("not run").wait_for(PROMPT)
    assert answers(record) == ["cancel"]


def test_text_being_typed_when_the_question_comes_is_kept_for_the_next_prompt(
    record: Path, front: FrontTerminal
) -> None:
    with front("edit", "--record", str(record), *LONG_PAUSE) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(QUESTION).press("yet 1").wait_for(
            "not an answer yet: yet 1"
        )
        assert not re.search(CHOICES, terminal.screen)
        terminal.signal(PAUSE_IS_OVER).wait_for(CHOICES)
        terminal.wait_for("too early for an answer, kept for the next prompt: yet 1")
        terminal.press("3").wait_for("not run").wait_for(r"(?m)^\u203a yet 1$").press(" more\r")
        eventually(lambda: prompts(record) == ["do it", "yet 1 more"], what="the text is part of the next prompt")
    assert answers(record) == ["cancel"]


def test_a_message_that_waits_answers_no_question(record: Path, front: FrontTerminal) -> None:
    with front("late_edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for("first part").press("two\r").wait_for("two  queued")
        terminal.signal(signal.SIGUSR2).wait_for(CHOICES).press("3").wait_for("not run").wait_for(r"(?m)^\u203a two$")
        eventually(lambda: prompts(record) == ["do it", "two"], what="the message is sent after the turn")
    assert answers(record) == ["cancel"]


def test_messages_that_look_like_answers_are_dropped_when_a_question_comes(record: Path, front: FrontTerminal) -> None:
    with front("late_edit", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for("first part").press("y\rn\r").wait_for("n  queued")
        terminal.signal(signal.SIGUSR2).wait_for(CHOICES).wait_for("for an answer, dropped: y; .*, dropped: n")
        terminal.press("3").wait_for("not run").wait_for(PROMPT)
    assert answers(record) == ["cancel"]
    assert prompts(record) == ["do it"]


def test_what_is_typed_while_the_program_works_between_turns_shows_once(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record), "--slow-list") as terminal:
        terminal.wait_for(PROMPT).press("/sessions\r")
        eventually(lambda: record.is_file() and '"list"' in record.read_text("utf-8"), what="the sessions are listed")
        terminal.press("typed early").signal(signal.SIGUSR2).wait_for(r"(?m)^\u203a typed early$")
        assert terminal.screen.count("typed early") == 1


def test_a_pasted_text_is_kept(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record), *LONG_PAUSE) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(QUESTION).press("\x1b[200~1\n2\x1b[201~")
        terminal.wait_for("not an answer yet: 1").signal(PAUSE_IS_OVER).wait_for(CHOICES).press("3").wait_for(
            "not run"
        ).wait_for(r"(?m)^\u203a 1$")
    assert answers(record) == ["cancel"]


def test_the_key_that_answered_one_question_answers_the_next_one_not(record: Path, front: FrontTerminal) -> None:
    with front("two", "--record", str(record)) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(CHOICES).press("11")
        terminal.wait_for(r"\$ make test").wait_for(CHOICES)
        terminal.wait_for("too early for an answer, dropped: 1").press("3").wait_for("Both decided")
    assert answers(record) == ["proceed_once", "cancel"]


def test_text_is_kept_when_the_question_is_answered_elsewhere_meanwhile(record: Path, front: FrontTerminal) -> None:
    with front("edit", "--record", str(record), *LONG_PAUSE) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(QUESTION).press("next").wait_for("not an answer yet: next")
        terminal.signal(signal.SIGUSR1).wait_for("answered in neovim").wait_for("All done")
        terminal.wait_for(r"(?m)^\u203a next$")


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_need_no_pause(record: Path, key: str, front: FrontTerminal) -> None:
    said = {"\x03": "\u2013 cancelled", "\x04": "The question stays open"}
    with front("edit", "--record", str(record), *LONG_PAUSE) as terminal:
        terminal.wait_for(PROMPT).press("do it\r").wait_for(QUESTION).press(key).wait_for(said[key])
    assert answers(record) == []


def test_a_line_from_before_the_question_does_not_answer_it_on_a_plain_terminal(
    record: Path, front: FrontTerminal
) -> None:
    with front("late_edit", "--record", str(record), *LONG_PAUSE, environment=PLAIN) as terminal:
        terminal.wait_for("\u203a").press("do it\r").wait_for("first part").press("1\rtwo\r").wait_for("two")
        terminal.signal(signal.SIGUSR2)
        terminal.wait_for("too early for an answer, dropped: 1").wait_for("kept for the next prompt: two")
        terminal.signal(PAUSE_IS_OVER).wait_for(r"answer \(1, 2, 3, e, t\):")
        terminal.press("3\r").wait_for(r"(?m)^\u203a two$")
        eventually(lambda: prompts(record) == ["do it", "two"], what="the kept line is the next prompt")
    assert answers(record) == ["cancel"]


def test_a_line_begun_before_the_question_does_not_answer_it_on_a_plain_terminal(
    record: Path, front: FrontTerminal
) -> None:
    with front("late_edit", "--record", str(record), environment=PLAIN) as terminal:
        terminal.wait_for("\u203a").press("do it\r").wait_for("first part").press("1").wait_for(r"1$")
        terminal.signal(signal.SIGUSR2).wait_for(r"answer \(1, 2, 3, e, t\):").press("\r").wait_for("'' is not one of")
        terminal.press("3\r").wait_for("not run")
    assert answers(record) == ["cancel"]
