"""Keys meant for other text never decide or change a review in Emacs, however late they come."""

from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted
from isthmus.ide.reviews.review import DiffReview
from support.emacs import EmacsDriver, emacs_driver, evil_layer
from support.neovim import Heard, hearing
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

DELAYS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 1.99)
"""Seconds between the view of a review and keys that were meant for other text."""
_CLOCK = """(progn
  (defvar test-clock (float-time))
  (advice-add 'float-time :around (lambda (real &optional time) (if time (funcall real time) test-clock)))
  (advice-add 'current-idle-time :override (lambda () (seconds-to-time 60))) t)"""
SAVE, ACCEPT = "\x18\x13", "\x03\x03"


@pytest.fixture
def configuration() -> str:
    return ""


@pytest.fixture
async def driver(driver: EmacsDriver) -> EmacsDriver:
    """Return Emacs as a user has it, idle for a minute, with a stopped clock."""
    await driver.emacs.evaluate(_CLOCK)
    return driver


async def _pass(driver: EmacsDriver, seconds: float) -> None:
    await driver.emacs.evaluate(f"(setq test-clock (+ test-clock {seconds}))")


async def _in_front(driver: EmacsDriver, name: str) -> None:
    async def is_in_front() -> bool:
        return await driver.emacs.evaluate("(buffer-name)") == name

    await eventually_async(is_in_front, what=f"{name} has the focus")


def _file(workspace: Path, name: str, text: str = "one\n") -> Path:
    path = workspace / name
    path.write_text(text, encoding="utf-8")
    return path


def _review(path: Path, name: str = "r1") -> DiffReview:
    return DiffReview(name, str(path), "proposed\n", "owner", "Gemini CLI")


async def test_what_is_typed_and_saved_goes_to_ones_own_file_when_a_review_just_came_up(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    own, other = _file(workspace, "own.txt", ""), _file(workspace, "a.py")
    await driver.open(own)
    for number, delay in enumerate(DELAYS):
        await driver.editor.open_diff(_review(other, f"r{number}"))
        await _in_front(driver, "*proposed: a.py*")
        await _pass(driver, delay)
        driver.emacs.terminal.press(f"{number % 10}{SAVE}")
        expected = "".join(str(typed % 10) for typed in range(number + 1)) + "\n"
        await eventually_async(lambda text=expected: own.read_text() == text, what=f"own file, {delay} s")
        assert await driver.editor.close_diff(f"r{number}") == "proposed\n", f"{delay} s"
    assert heard.decisions == []


async def test_the_keys_for_saving_save_ones_own_file_when_a_review_just_came_up(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    own = _file(workspace, "own.txt", "")
    await driver.open(own)
    await driver.type_over("mine\n")
    await driver.editor.open_diff(_review(_file(workspace, "a.py")))
    await _in_front(driver, "*proposed: a.py*")
    driver.emacs.terminal.press(SAVE)
    await eventually_async(lambda: own.read_text() == "mine\n", what="own file is saved")
    await driver.emacs.says("a review of a.py waits; M-x isthmus-review shows it")
    assert heard.decisions == []


@pytest.mark.parametrize("keys", [":w\r", "ZZ", "ZQ", ":q!\r"])
async def test_keys_of_evil_go_to_ones_own_window_when_a_review_just_came_up(workspace: Path, keys: str) -> None:
    async with emacs_driver(workspace, reviews=evil_layer()) as driver, hearing(driver.editor) as heard:
        await driver.emacs.evaluate(_CLOCK)
        own, is_write = _file(workspace, "own.txt", ""), keys in (":w\r", "ZZ")
        await driver.open(own)
        await driver.emacs.evaluate("(progn (split-window-right) t)")
        await driver.type_over("mine\n")
        await driver.editor.open_diff(_review(_file(workspace, "a.py")))
        await _in_front(driver, "*proposed: a.py*")
        driver.emacs.terminal.press(keys)
        await driver.emacs.says("a review of a.py waits; M-x isthmus-review shows it")
        windows = 2 if keys == ":w\r" else 1

        async def is_done() -> bool:
            found = await driver.emacs.evaluate("(list (buffer-name) (length (window-list)))")
            return found == ["own.txt", windows] and own.read_text() == ("mine\n" if is_write else "")

        await eventually_async(is_done, what="own file or window is as the keys say")
        assert await driver.emacs.reviews() == ["r1"]
        assert heard.decisions == []


async def test_a_review_that_could_be_read_takes_keys_and_says_so_before(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    await driver.open(_file(workspace, "own.txt"))
    await driver.editor.open_diff(_review(_file(workspace, "a.py")))
    await driver.emacs.shows("In a moment C-c C-c accepts")
    driver.emacs.terminal.press(ACCEPT)
    await driver.emacs.shows("this edit came up only now; read it, then C-c C-c")
    await driver.emacs.shows("C-c C-c accept")
    await _pass(driver, 2.01)
    driver.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", "proposed\n")


async def test_after_keys_went_back_the_review_is_shown_by_its_command(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    await driver.open(_file(workspace, "own.txt", ""))
    await driver.editor.open_diff(_review(_file(workspace, "a.py")))
    await _in_front(driver, "*proposed: a.py*")
    driver.emacs.terminal.press("x")
    await driver.emacs.shows("a review of a.py waits; M-x isthmus-review shows it")
    await _in_front(driver, "own.txt")
    driver.emacs.terminal.press("\x1bxisthmus-review\r")
    await _in_front(driver, "*proposed: a.py*")
    driver.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", "proposed\n")


async def test_keys_for_one_review_do_not_decide_the_next(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    for name in ("a.py", "b.py"):
        await driver.editor.open_diff(_review(_file(workspace, name), name))
        await _in_front(driver, f"*proposed: {name}*")
        await _pass(driver, 3)
    driver.emacs.terminal.press(ACCEPT)
    await _in_front(driver, "*proposed: a.py*")
    driver.emacs.terminal.press(ACCEPT)
    await driver.emacs.shows("this edit came up only now")
    assert heard.decisions == [DiffAccepted("b.py", "proposed\n")]
    await _pass(driver, 1.01)
    driver.emacs.terminal.press(ACCEPT)
    await eventually_async(lambda: len(heard.decisions) == 2, what="the other decision")


async def test_a_review_does_not_disturb_a_search(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    own = _file(workspace, "own.txt", "one two\n")
    await driver.open(own)
    driver.emacs.terminal.press("\x13tw")
    await driver.emacs.shows("I-search: tw")
    await driver.editor.open_diff(_review(_file(workspace, "a.py")))
    driver.emacs.terminal.press("o")
    await driver.emacs.shows("I-search: two")
    driver.emacs.terminal.press("\r")
    await _in_front(driver, "*proposed: a.py*")
    assert heard.decisions == []
