"""Hunks of a review that are accepted and rejected in a real Emacs."""

from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted
from isthmus.ide.reviews.review import DiffReview
from isthmus.text.hunks import hunks_between, with_hunks
from support.emacs import EmacsDriver
from support.neovim import Heard
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

OLD = "a\nb\nc\nd\ne\nf\ng\nh\n"
NEW = "A\nb\nnew\nc\ne\nf\nG\nG2\nh\nend\n"
"""Changed, added, removed, changed, and added at the end: five hunks, each on line `LINES` of the proposal."""
LINES = {1: 1, 2: 3, 3: 4, 4: 7, 5: 10}
ACCEPT, ACCEPT_HUNK, REJECT_HUNK = "\x03\x03", "\x03\x01", "\x03\x04"
PROPOSAL = "*proposed: a.py*"


async def _open(driver: EmacsDriver, path: Path, proposed: str, number: int = 1) -> None:
    await driver.editor.open_diff(DiffReview(f"r{number}", str(path), proposed, "owner", "Gemini CLI"))

    async def is_shown() -> bool:
        return await driver.emacs.evaluate(f'(equal (buffer-name (window-buffer (selected-window))) "{PROPOSAL}")')

    await eventually_async(is_shown, what="the review is shown")


async def _press(driver: EmacsDriver, line: int, keys: str) -> None:
    """Go to a line and press keys; wait until the keys have been taken."""
    driver.emacs.terminal.press(f"\x1bgg{line}\r{keys}")
    await _taken(driver)


async def _taken(driver: EmacsDriver) -> None:
    """Wait until the keys that were pressed have been taken, by a key after them."""
    count = await driver.emacs.evaluate("(if (boundp 'taken) taken 0)")
    await driver.emacs.evaluate(
        '(progn (defvar taken 0) (global-set-key (kbd "<f9>") (lambda () (interactive) (setq taken (1+ taken)))) t)'
    )
    driver.emacs.terminal.press("\x1b[20~")

    async def is_taken() -> bool:
        return await driver.emacs.evaluate("taken") == count + 1

    await eventually_async(is_taken, what="the keys are taken")


async def _closed(driver: EmacsDriver, heard: Heard) -> None:
    async def no_view() -> bool:
        return PROPOSAL not in await driver.emacs.buffers()

    await eventually_async(no_view, what="the view is gone")
    heard.events.clear()


async def test_any_hunks_can_be_rejected_and_accepted_again(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    assert len(hunks_between(OLD, NEW)) == len(LINES)
    path = workspace / "a.py"
    path.write_text(OLD, encoding="utf-8")
    for number in (0, 1, 6, 13, 20, 27, 31):
        rejected = [hunk for hunk in LINES if number >> (hunk - 1) & 1]
        again = [hunk for hunk in rejected if (hunk + number) % 3 == 0]
        await _open(driver, path, NEW, number)
        for hunk in reversed(rejected):  # so that the lines of those that follow stay where they are
            await _press(driver, LINES[hunk], REJECT_HUNK + (ACCEPT_HUNK if hunk in again else ""))
        kept = set(LINES) - (set(rejected) - set(again))
        driver.emacs.terminal.press(ACCEPT)
        assert await heard.decision() == DiffAccepted(f"r{number}", with_hunks(OLD, NEW, kept)), (rejected, again)
        await _closed(driver, heard)


async def test_the_hunks_of_a_region_are_rejected_and_one_is_accepted(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    path = workspace / "a.py"
    path.write_text(OLD, encoding="utf-8")
    await _open(driver, path, NEW)
    driver.emacs.terminal.press("\x18h" + REJECT_HUNK)
    await _taken(driver)
    assert await driver.emacs.evaluate("(buffer-string)") == OLD
    driver.emacs.terminal.press("\x18u")
    await _taken(driver)
    assert await driver.emacs.evaluate("(buffer-string)") == NEW
    driver.emacs.terminal.press("\x18h" + REJECT_HUNK)
    await _press(driver, 8, ACCEPT_HUNK + ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", with_hunks(OLD, NEW, [5]))


async def test_a_rejected_last_hunk_brings_back_how_the_file_ends(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    path = workspace / "a.py"
    path.write_bytes(b"a\r\nb\r\nc")
    await _open(driver, path, "A\r\nb\r\nC\r\n")
    await _press(driver, 3, REJECT_HUNK + ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", "A\r\nb\r\nc")


async def test_a_line_without_a_hunk_says_so(driver: EmacsDriver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text(OLD, encoding="utf-8")
    await _open(driver, path, NEW)
    await _press(driver, 2, REJECT_HUNK)
    await driver.emacs.says("this line has no hunk")
    driver.emacs.terminal.press("\x18o" + REJECT_HUNK)
    await driver.emacs.says("go to the hunk in the proposal")
    assert await driver.emacs.evaluate(f'(with-current-buffer "{PROPOSAL}" (buffer-string))') == NEW
