"""Reviews in a real Emacs, as a user sees and decides them; the companion's side is in this process."""

import asyncio
import os
from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted, DiffEdited, DiffRejected, EditorError
from isthmus.ide.reviews.review import DiffReview
from support.emacs import EmacsDriver
from support.neovim import Heard
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

ACCEPT, REJECT, OTHER_WINDOW = "\x03\x03", "\x03\x0b", "\x18o"


def _file(workspace: Path, name: str = "a.py", data: bytes = b"one\ntwo\nthree\n") -> Path:
    path = workspace / name
    path.write_bytes(data)
    return path


def _review(path: Path, proposed: str = "one\nTWO\nthree\n", name: str = "r1") -> DiffReview:
    return DiffReview(name, str(path), proposed, "owner", "Gemini CLI")


async def _shown(driver: EmacsDriver, name: str = "a.py") -> None:
    """Wait until both sides are in windows, and the cursor is on the first change."""

    async def both_sides() -> bool:
        shown = await driver.emacs.evaluate("(mapcar (lambda (w) (buffer-name (window-buffer w))) (window-list))")
        return {f"*on disk: {name}*", f"*proposed: {name}*"} <= set(shown) and await driver.emacs.evaluate(
            f'(consp (isthmus-review-hunks (buffer-local-value \'isthmus--review (get-buffer "*proposed: {name}*"))))'
        )

    await eventually_async(both_sides, what="the review is shown")


async def _closed(driver: EmacsDriver) -> None:
    async def no_view() -> bool:
        return not any(name.startswith(("*on disk", "*proposed")) for name in await driver.emacs.buffers())

    await eventually_async(no_view, what="the view is gone")


async def test_a_review_stands_beside_the_file_and_is_decided_with_keys(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    path = _file(workspace)
    await driver.open(path)
    await driver.editor.open_diff(_review(path))
    await _shown(driver)
    for text in ("on disk  ", "proposed by Gemini CLI", "C-c C-c accept"):
        await driver.emacs.shows(text)
    driver.emacs.terminal.press("x" + ACCEPT)  # the cursor is on the change
    decision = await heard.decision()
    assert decision == DiffAccepted("r1", "one\nxTWO\nthree\n")
    assert path.read_text() == "one\ntwo\nthree\n"
    await _closed(driver)
    assert await driver.emacs.evaluate("(list (buffer-name) (length (window-list)))") == ["a.py", 1]


@pytest.mark.parametrize("keys", [REJECT, "\x18k\r", OTHER_WINDOW + "\x18k\r", OTHER_WINDOW + REJECT], ids=repr)
async def test_closing_a_review_rejects_it(driver: EmacsDriver, heard: Heard, workspace: Path, keys: str) -> None:
    await driver.editor.open_diff(_review(_file(workspace)))
    await _shown(driver)
    driver.emacs.terminal.press(keys)
    assert await heard.decision() == DiffRejected("r1")
    await _closed(driver)


async def test_looking_away_decides_nothing(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    path = _file(workspace)
    await driver.editor.open_diff(_review(path))
    await _shown(driver)
    driver.emacs.terminal.press("\x181\x18b*scratch*\r\x1bxisthmus-review\r")  # C-x 1, C-x b
    await _shown(driver)
    assert await driver.emacs.reviews() == ["r1"]
    assert heard.decisions == []
    driver.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", _review(path).proposed)


async def test_what_is_different_is_marked(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace, data=b"same\nold line\nsame\ngone\nsame\n")
    await driver.editor.open_diff(_review(path, "same\nnew line\nsame\nsame\nadded\n"))
    await _shown(driver)

    async def marks() -> list[list[object]]:
        return await driver.emacs.evaluate(
            """(mapcar (lambda (name)
                 (with-current-buffer name
                   (vconcat (sort (delq nil (mapcar (lambda (o)
                           (and (memq (overlay-get o 'face) '(isthmus-review-removed isthmus-review-added))
                                (buffer-substring-no-properties (overlay-start o) (overlay-end o))))
                         (overlays-in (point-min) (point-max)))) #'string<))))
               '("*on disk: a.py*" "*proposed: a.py*"))"""
        )

    expected = [["gone\n", "old line\n"], ["added\n", "new line\n"]]

    async def as_expected() -> bool:
        return await marks() == expected

    await eventually_async(as_expected, what="marks")
    driver.emacs.terminal.press("\x03\x0e\x03\x0e")  # C-c C-n
    await eventually_async(lambda: _line_is(driver, 5), what="the cursor is on the last change")
    driver.emacs.terminal.press("\x1b>more")
    expected = [["gone\n", "old line\n"], ["added\n", "more", "new line\n"]]

    async def with_the_edit() -> bool:
        return "more" in "".join(str(text) for text in (await marks())[1])

    await eventually_async(with_the_edit, what="the edit is marked")


async def _line_is(driver: EmacsDriver, line: int) -> bool:
    return await driver.emacs.evaluate("(line-number-at-pos)") == line


@pytest.mark.parametrize(
    "proposed",
    ["a\r\nb\r\n", "a\r\nb\n", "a\rb", "\ufeffa\r\nb", "\ufeff", "nul\0\n", "\x1b[31m\x07\n", "\u2028\x85\f\n", "\r\n"],
    ids=repr,
)
async def test_a_proposal_comes_back_as_it_was(
    driver: EmacsDriver, heard: Heard, workspace: Path, proposed: str
) -> None:
    review = _review(_file(workspace), proposed)
    await driver.editor.open_diff(review)
    await driver.accept(review)
    assert await heard.decision() == DiffAccepted("r1", proposed)


@pytest.mark.parametrize(
    ("proposed", "expected"),
    [("a\r\nb\r\n", "xa\r\nb\r\n"), ("\ufeffa\nb", "\ufeffxa\nb"), ("a\r\nb\n", "xa\r\nb\n"), ("nul\0", "xnul\0")],
    ids=repr,
)
async def test_an_edit_keeps_newlines_mark_and_missing_newline(
    driver: EmacsDriver, heard: Heard, workspace: Path, proposed: str, expected: str
) -> None:
    review = _review(_file(workspace), proposed)
    await driver.editor.open_diff(review)
    await driver.emacs.evaluate('(with-current-buffer "*proposed: a.py*" (goto-char 1) (insert "x") t)')
    await driver.accept(review)
    assert await heard.decision() == DiffAccepted("r1", expected)


async def test_what_reorders_text_is_seen_and_accepted_as_it_is(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    proposed = 'access = "user\u202e \u2066# for admins\u2069"\n'
    await driver.editor.open_diff(_review(_file(workspace), proposed))
    await _shown(driver)
    await driver.emacs.shows('access = "user\\u202e \\u2066# for admins\\u2069"')
    driver.emacs.terminal.press("\x1b<\x05!" + ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", proposed.replace('"\n', '"!\n'))


async def test_the_name_of_a_file_is_seen_as_it_is(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    review = _review(workspace / "a\u202etxt.py", "new\n")
    await driver.editor.open_diff(review)
    await driver.emacs.shows("*proposed: a\\u202etxt.py*")
    assert not any("\u202e" in name for name in await driver.emacs.buffers())
    await driver.accept(review)
    assert await heard.decision() == DiffAccepted("r1", "new\n")
    await driver.emacs.shows("accepted a\\u202etxt.py")


async def test_a_large_file_is_reviewed(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    lines = [f"line {number} with some text in it\n" for number in range(150_000)]
    path = _file(workspace, data="".join(lines).encode())
    lines[70_000] = "another line\n"
    review = _review(path, "".join(lines))
    await driver.editor.open_diff(review)
    await _shown(driver)
    await eventually_async(lambda: _line_is(driver, 70_001), what="the cursor is on the change")
    await driver.accept(review)
    assert await heard.decision() == DiffAccepted("r1", review.proposed)


@pytest.mark.parametrize("data", [b"\xff\xfe\0binary\x80", b"caf\xe9\n", b""], ids=repr)
async def test_a_file_of_any_bytes_is_shown_and_stays(
    driver: EmacsDriver, heard: Heard, workspace: Path, data: bytes
) -> None:
    path = _file(workspace, os.fsdecode(b"\xe9.txt"), data)
    review = _review(path, "new\n")
    await driver.editor.open_diff(review)
    await driver.accept(review)
    assert await heard.decision() == DiffAccepted("r1", "new\n")
    assert path.read_bytes() == data


async def test_what_is_no_file_is_not_shown(driver: EmacsDriver, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    with pytest.raises(EditorError, match="pipe"):
        await driver.editor.open_diff(_review(workspace / "pipe"))
    assert await driver.emacs.reviews() == []
    await _closed(driver)


async def test_a_dirty_file_keeps_its_unsaved_changes(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    path = _file(workspace)
    await driver.open(path)
    await driver.type_over("mine\n")
    review = _review(path)
    await driver.editor.open_diff(review)
    await driver.emacs.shows("without your unsaved changes")
    await driver.accept(review)
    assert await heard.decision() == DiffAccepted("r1", review.proposed)
    path.write_text(review.proposed)
    await _closed(driver)
    assert await driver.editor.text(str(path)) == "mine\n"


async def test_an_accepted_file_is_read_again_when_the_agent_writes_it(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace)
    await driver.open(path)
    review = _review(path)
    await driver.editor.open_diff(review)
    await driver.accept(review)
    path.write_text("one\n")  # not in one write
    path.write_text(review.proposed)

    async def is_new() -> bool:
        return await driver.editor.text(str(path)) == review.proposed

    await eventually_async(is_new, what="the file is read again")
    assert await driver.editor.is_dirty(str(path)) is False


async def test_two_reviews_are_decided_one_after_the_other(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    await driver.open(_file(workspace, "start.py"))
    await driver.editor.open_diff(_review(_file(workspace, "one.py"), "1\n", "r1"))
    await _shown(driver, "one.py")
    await driver.editor.open_diff(_review(_file(workspace, "two.py"), "2\n", "r2"))
    await _shown(driver, "two.py")
    driver.emacs.terminal.press(ACCEPT)
    await _shown(driver, "one.py")
    driver.emacs.terminal.press(REJECT)
    await eventually_async(lambda: len(heard.decisions) == 2, what="two decisions")
    assert heard.decisions == [DiffAccepted("r2", "2\n"), DiffRejected("r1")]
    await _closed(driver)
    assert await driver.emacs.evaluate("(list (buffer-name) (length (window-list)))") == ["start.py", 1]


async def test_undo_leads_back_to_the_proposal_and_no_further(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    review = _review(_file(workspace))
    await driver.editor.open_diff(review)
    await _shown(driver)
    driver.emacs.terminal.press("mine")
    await driver.emacs.shows("mineTWO")
    driver.emacs.terminal.press("\x1f\x1f")  # C-_
    await driver.emacs.shows("No further undo information")
    driver.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r1", review.proposed)


async def test_a_review_does_not_catch_what_a_user_types(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    path = _file(workspace, "typing.txt", b"")
    await driver.open(path)
    await driver.emacs.evaluate("(setq isthmus-review-when-idle 3600)")
    driver.emacs.terminal.press("a")
    await eventually_async(lambda: driver.has_text(path, "a"), what="the key has arrived")
    await driver.editor.open_diff(_review(_file(workspace)))
    await driver.emacs.shows("a review of a.py waits")
    driver.emacs.terminal.press("b")
    await eventually_async(lambda: driver.has_text(path, "ab"), what="the key has arrived where the first did")
    await driver.emacs.evaluate("(setq isthmus-review-when-idle 0)")
    await _shown(driver)
    driver.emacs.terminal.press(REJECT)
    assert await heard.decision() == DiffRejected("r1")


async def test_a_review_waits_until_the_minibuffer_is_free_and_can_be_taken_back(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    driver.emacs.terminal.press("\x18\x06half")
    await driver.emacs.shows("half")
    await driver.editor.open_diff(_review(_file(workspace, "one.py"), name="r1"))
    await driver.editor.open_diff(_review(_file(workspace), name="r2"))
    assert await driver.editor.close_diff("r1") == _review(workspace).proposed
    driver.emacs.terminal.press("way")
    await driver.emacs.shows("halfway")
    await driver.emacs.quits("halfway")
    await _shown(driver)
    driver.emacs.terminal.press(ACCEPT)
    assert await heard.decision() == DiffAccepted("r2", _review(workspace).proposed)


async def test_a_review_withdrawn_while_the_user_types_a_command_leaves_the_minibuffer(
    driver: EmacsDriver, workspace: Path
) -> None:
    await driver.open(_file(workspace, "start.py"))
    review = _review(_file(workspace))
    await driver.editor.open_diff(review)
    await _shown(driver)
    await driver.edit_review(review, "mine\n")
    driver.emacs.terminal.press("\x18\x06half")
    await driver.emacs.shows("half")
    assert await driver.editor.close_diff("r1") == "mine\n"
    driver.emacs.terminal.press("way")
    await driver.emacs.shows("halfway")
    await driver.emacs.quits("halfway")
    await _closed(driver)
    await eventually_async(lambda: _buffer_is(driver, "start.py"), what="the windows are as they were")


async def _buffer_is(driver: EmacsDriver, name: str) -> bool:
    return await driver.emacs.evaluate("(list (buffer-name) (length (window-list)))") == [name, 1]


async def test_a_terminal_keeps_the_focus_and_stays_in_sight(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    await driver.emacs.evaluate('(progn (require \'term) (term "/bin/sh") t)')
    await driver.editor.open_diff(_review(_file(workspace)))
    await _shown(driver)
    driver.emacs.terminal.press("echo still $((1 + 1)) here\r")
    await driver.emacs.shows("still 2 here")
    driver.emacs.terminal.press("\x03o" + OTHER_WINDOW + ACCEPT)  # C-c is the terminal's C-x
    assert await heard.decision() == DiffAccepted("r1", _review(workspace).proposed)
    await _closed(driver)
    await eventually_async(lambda: _buffer_is(driver, "*terminal*"), what="the windows are as they were")


async def test_ediff_may_be_used_on_a_review(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    await driver.editor.open_diff(_review(_file(workspace)))
    await _shown(driver)
    driver.emacs.terminal.press("\x03\x05")  # C-c C-e
    await driver.emacs.shows("Ediff")
    await eventually_async(lambda: _has_buffer(driver, "*Ediff Control Panel*"), what="Ediff has started")
    driver.emacs.terminal.press("n")
    await driver.accept(_review(workspace))
    assert await heard.decision() == DiffAccepted("r1", _review(workspace).proposed)
    await _closed(driver)
    assert not await _has_buffer(driver, "*Ediff Control Panel*")


async def _has_buffer(driver: EmacsDriver, name: str) -> bool:
    return name in await driver.emacs.buffers()


async def test_another_mode_for_the_proposal_changes_nothing(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    await driver.editor.open_diff(_review(_file(workspace)))
    await _shown(driver)
    driver.emacs.terminal.press("\x1bxtext-mode\r")
    await eventually_async(lambda: driver.emacs.evaluate("(eq major-mode 'text-mode)"), what="the mode")
    driver.emacs.terminal.press(REJECT)
    assert await heard.decision() == DiffRejected("r1")


async def test_what_the_user_typed_is_kept_when_the_companion_is_gone(driver: EmacsDriver, workspace: Path) -> None:
    edited, untouched = _review(_file(workspace)), _review(_file(workspace, "b.py"), name="r2")
    await driver.editor.open_diff(edited)
    await driver.editor.open_diff(untouched)
    await driver.edit_review(edited, "mine\n")
    await driver.emacs.evaluate("(progn (delete-process isthmus--process) t)")
    await driver.emacs.shows("your text is kept in the buffer *kept: a.py*")
    await _closed(driver)
    assert await driver.emacs.evaluate('(with-current-buffer "*kept: a.py*" (buffer-string))') == "mine\n"
    assert await driver.emacs.reviews() == []
    driver.emacs.terminal.press("\x18b*kept: a.py*\r\x18\x13")  # C-x C-s
    await driver.emacs.shows("File to save in: ")


async def test_quitting_emacs_rejects_what_is_undecided(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    await driver.editor.open_diff(_review(_file(workspace)))
    await _shown(driver)
    driver.emacs.terminal.press("\x18\x03")  # C-x C-c
    assert await heard.decision() == DiffRejected("r1")


@pytest.mark.parametrize("keys", ["\x18\x03", "\x1b:(kill-emacs)\r"], ids=["C-x C-c", "by Lisp"])
async def test_quitting_emacs_hands_over_what_was_typed(
    driver: EmacsDriver, heard: Heard, workspace: Path, keys: str
) -> None:
    review = _review(_file(workspace))
    await driver.editor.open_diff(review)
    await driver.edit_review(review, "mine\n")
    driver.emacs.terminal.press(keys)  # it waits until the companion has read it; only the end by a signal does not
    await asyncio.to_thread(driver.emacs.terminal.wait_for_exit, 60)
    assert await heard.decision() == DiffRejected("r1", "mine\n")


async def test_what_is_typed_into_a_review_is_told_soon(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    await driver.editor.open_diff(_review(_file(workspace)))
    await _shown(driver)
    driver.emacs.terminal.press("mine ")  # and is still typing
    typed = DiffEdited("r1", "one\nmine TWO\nthree\n")
    await eventually_async(lambda: typed in heard.events, what="the text in the view")
    assert heard.decisions == []
