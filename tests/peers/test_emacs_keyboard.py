"""Keys that were meant for something else never decide or change a review in Emacs, however late they come."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted
from isthmus.ide.reviews.review import DiffReview
from support.emacs import EmacsPerson, emacs_person
from support.neovim import Heard, hearing
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

DELAYS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.99)
"""Seconds between the view of a review and keys that were meant for something else."""
_CLOCK = """(progn
  (defvar test-clock (float-time))
  (advice-add 'float-time :around (lambda (real &optional time) (if time (funcall real time) test-clock)))
  (advice-add 'current-idle-time :override (lambda () (seconds-to-time 60))) t)"""
SAVE, ACCEPT = "\x18\x13", "\x03\x03"


@pytest.fixture
async def person(workspace: Path) -> AsyncGenerator[EmacsPerson]:
    """Emacs as a user has it, idle for a minute; its clock stands still."""
    async with emacs_person(workspace, reviews="") as person:
        await person.emacs.evaluate(_CLOCK)
        yield person


@pytest.fixture
async def heard(person: EmacsPerson) -> AsyncGenerator[Heard]:
    async with hearing(person.editor) as heard:
        yield heard


async def _pass(person: EmacsPerson, seconds: float) -> None:
    await person.emacs.evaluate(f"(setq test-clock (+ test-clock {seconds}))")


async def _in_front(person: EmacsPerson, name: str) -> None:
    async def is_in_front() -> bool:
        return await person.emacs.evaluate("(buffer-name)") == name

    await eventually_async(is_in_front, what=f"{name} has the focus")


def _file(workspace: Path, name: str, text: str = "one\n") -> Path:
    path = workspace / name
    path.write_text(text, encoding="utf-8")
    return path


def _review(path: Path, name: str = "r1") -> DiffReview:
    return DiffReview(name, str(path), "proposed\n", "owner", "Gemini CLI")


async def test_what_is_typed_and_saved_goes_to_ones_own_file_when_a_review_just_came_up(
    person: EmacsPerson, heard: Heard, workspace: Path
) -> None:
    own, other = _file(workspace, "own.txt", ""), _file(workspace, "a.py")
    await person.open(own)
    for number, delay in enumerate(DELAYS):
        await person.editor.open_diff(_review(other, f"r{number}"))
        await _in_front(person, "*proposed: a.py*")
        await _pass(person, delay)
        person.emacs.terminal.press(f"{number % 10}{SAVE}")
        expected = "".join(str(typed % 10) for typed in range(number + 1)) + "\n"
        await eventually_async(lambda text=expected: own.read_text() == text, what=f"own file, {delay} s")
        assert await person.editor.close_diff(f"r{number}") == "proposed\n", f"{delay} s"
    assert heard.decisions == []


async def test_a_review_that_could_be_read_takes_keys_and_says_so_before(
    person: EmacsPerson, heard: Heard, workspace: Path
) -> None:
    await person.open(_file(workspace, "own.txt"))
    await person.editor.open_diff(_review(_file(workspace, "a.py")))
    await person.emacs.shows("In a moment C-c C-c accepts")
    person.emacs.terminal.press(ACCEPT)
    await person.emacs.shows("this edit came up only now; read it, then C-c C-c")
    await person.emacs.shows("C-c C-c accept")
    await _pass(person, 2.01)
    person.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", "proposed\n")


async def test_after_keys_went_back_the_review_is_shown_by_its_command(
    person: EmacsPerson, heard: Heard, workspace: Path
) -> None:
    await person.open(_file(workspace, "own.txt", ""))
    await person.editor.open_diff(_review(_file(workspace, "a.py")))
    await _in_front(person, "*proposed: a.py*")
    person.emacs.terminal.press("x")
    await person.emacs.shows("a review of a.py waits; M-x isthmus-review shows it")
    await _in_front(person, "own.txt")
    person.emacs.terminal.press("\x1bxisthmus-review\r")
    await _in_front(person, "*proposed: a.py*")
    person.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", "proposed\n")


async def test_keys_for_one_review_do_not_decide_the_next(person: EmacsPerson, heard: Heard, workspace: Path) -> None:
    for name in ("a.py", "b.py"):
        await person.editor.open_diff(_review(_file(workspace, name), name))
        await _in_front(person, f"*proposed: {name}*")
        await _pass(person, 3)
    person.emacs.terminal.press(ACCEPT)
    await _in_front(person, "*proposed: a.py*")
    person.emacs.terminal.press(ACCEPT)
    await person.emacs.shows("this edit came up only now")
    assert heard.decisions == [DiffAccepted("b.py", "proposed\n")]
    await _pass(person, 1.01)
    person.emacs.terminal.press(ACCEPT)
    await eventually_async(lambda: len(heard.decisions) == 2, what="the other decision")


async def test_a_review_does_not_disturb_a_search(person: EmacsPerson, heard: Heard, workspace: Path) -> None:
    own = _file(workspace, "own.txt", "one two\n")
    await person.open(own)
    person.emacs.terminal.press("\x13tw")
    await person.emacs.shows("I-search: tw")
    await person.editor.open_diff(_review(_file(workspace, "a.py")))
    person.emacs.terminal.press("o")
    await person.emacs.shows("I-search: two")
    person.emacs.terminal.press("\r")
    await _in_front(person, "*proposed: a.py*")
    assert heard.decisions == []
