"""How reviews are laid out in a real Emacs, what Lisp of the user learns of them, and the log of the protocol."""

from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted, DiffRejected, Range
from isthmus.ide.editor import Position as At
from support.editing import review
from support.emacs import AT_ONCE, EmacsDriver
from support.neovim import Heard
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

LINES = "one\ntwo\nthree\nfour\n"
PROPOSED = "one\nTWO\nthree\n"
CONTROL_PANEL = "*Ediff Control Panel*"
_CONFIGURATION = f"""{AT_ONCE} (setq isthmus-review-when-idle 0.1)
(global-set-key (kbd "C-c i") 'isthmus-command-map)
(setq ediff-window-setup-function 'ediff-setup-windows-plain)
(defvar told nil)
(defun note-opened (path) (push (list "opened" (file-name-nondirectory path)) told))
(defun note-closed (path how) (push (list (symbol-name how) (file-name-nondirectory path)) told))
(defun fail (&rest _) (error "Mistake"))
(add-hook 'isthmus-diff-opened-functions #'note-opened)
(add-hook 'isthmus-diff-closed-functions #'note-closed)
(add-hook 'isthmus-diff-opened-functions #'fail)
(add-hook 'isthmus-agent-attached-functions (lambda (name) (push (list "attached" name) told)))
(add-hook 'isthmus-agent-detached-functions (lambda (name) (push (list "detached" name) told)))
"""


@pytest.fixture
def configuration() -> str:
    return _CONFIGURATION


async def _propose(driver: EmacsDriver, path: Path, layout: str = "nil", number: int = 1) -> DiffAccepted:
    path.write_text(LINES, encoding="utf-8")
    await driver.emacs.evaluate(f"(progn (setq isthmus-review-layout '{layout}) t)")
    proposed = review(str(path), PROPOSED, number)
    await driver.editor.open_diff(proposed)
    return DiffAccepted(proposed.id, PROPOSED)


async def _edges(driver: EmacsDriver, side: str) -> list[int] | None:
    found = f'(get-buffer-window "*{side}: a.py*")'
    return await driver.emacs.evaluate(f"(and {found} (window-edges {found}))")


async def _eventually(driver: EmacsDriver, code: str, expected: object) -> None:
    async def condition() -> bool:
        found = await driver.emacs.evaluate(code)
        assert found == expected
        return True

    await eventually_async(condition, what=f"{code} is {expected!r}")


@pytest.mark.parametrize(("layout", "same_edge"), [("side-by-side", 1), ("stacked", 0)])
async def test_the_two_sides_stand_as_the_user_wants(
    driver: EmacsDriver, workspace: Path, layout: str, same_edge: int
) -> None:
    await _propose(driver, workspace / "a.py", layout)
    await driver.emacs.shows("C-c C-c accept")
    old, new = await _edges(driver, "on disk"), await _edges(driver, "proposed")
    assert old is not None
    assert new is not None
    assert old[same_edge] == new[same_edge]
    assert old[1 - same_edge] < new[1 - same_edge]


async def test_a_unified_review_is_one_buffer_with_the_removed_lines_in_it(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    accepted = await _propose(driver, workspace / "a.py", "unified")
    await driver.emacs.shows("\none\ntwo\nTWO\nthree\nfour\n")
    assert await _edges(driver, "on disk") is None
    driver.emacs.terminal.press("\x03\x03")
    assert await heard.decision() == accepted


async def test_ediff_starts_by_itself_and_its_control_panel_decides(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    accepted = await _propose(driver, workspace / "a.py", "ediff")
    await _eventually(driver, "(buffer-name (window-buffer (selected-window)))", CONTROL_PANEL)
    driver.emacs.terminal.press("qy")
    await _eventually(driver, "(buffer-name (window-buffer (selected-window)))", "*proposed: a.py*")
    assert CONTROL_PANEL not in await driver.emacs.buffers()
    driver.emacs.terminal.press("\x03\x05")  # C-c C-e
    await _eventually(driver, "(buffer-name (window-buffer (selected-window)))", CONTROL_PANEL)
    driver.emacs.terminal.press("\x03\x03")
    assert await heard.decision() == accepted
    await _eventually(driver, "(length (window-list))", 1)
    assert CONTROL_PANEL not in await driver.emacs.buffers()


async def test_functions_of_the_user_are_told_how_each_review_ended(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    for number, (name, keys) in enumerate((("a.py", "\x03\x03"), ("b.py", "\x03\x0b"), ("c.py", "\x18k\r"))):
        proposed = await _propose(driver, workspace / name, number=number)
        await driver.emacs.shows(f"*proposed: {name}*")
        driver.emacs.terminal.press(keys)
        ended = proposed if name == "a.py" else DiffRejected(proposed.review_id)
        await eventually_async(lambda ended=ended: ended in heard.decisions, what=f"{ended}")
    closed = await _propose(driver, workspace / "d.py", number=3)
    await driver.editor.close_diff(closed.review_id)
    expected = [
        ["opened", "a.py"], ["accepted", "a.py"], ["opened", "b.py"], ["rejected", "b.py"],
        ["opened", "c.py"], ["rejected", "c.py"], ["opened", "d.py"], ["closed", "d.py"],
    ]  # fmt: skip
    await _eventually(driver, "(vconcat (reverse told))", expected)
    assert await driver.has_message("isthmus-diff-opened-functions: fail: Mistake")


async def test_functions_of_the_user_are_told_of_agents_that_come_and_leave(driver: EmacsDriver) -> None:
    driver.editor.announce({}, [])
    driver.editor.agents_changed({"1": "Claude Code"})
    driver.editor.agents_changed({"1": "Claude Code", "2": "Gemini CLI"})
    driver.editor.agents_changed({"2": "Gemini CLI"})
    expected = [["attached", "Claude Code"], ["attached", "Gemini CLI"], ["detached", "Claude Code"]]
    await _eventually(driver, "(vconcat (reverse told))", expected)
    driver.emacs.terminal.press("\x03is")
    await driver.emacs.shows("attached: Gemini CLI; no review waits for you")
    await driver.editor.aclose()
    await _eventually(driver, "(vconcat (reverse told))", [*expected, ["detached", "Gemini CLI"]])


async def test_the_log_has_the_messages_without_texts_and_secrets(driver: EmacsDriver, workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text('x = "in the selection"\n', encoding="utf-8")
    driver.editor.announce({"no_proxy": "hush", "TOKEN": 'hush "hush" ' * 100}, ["/a/discovery.json"])
    await driver.editor.set_terminal_environment({"OTHER_TOKEN": "hush"})
    await driver.open(path)
    await driver.select(Range(At(0, 0), At(0, 5)))
    await driver.editor.open_files()
    await driver.editor.text(str(path))
    await driver.editor.open_diff(review(str(path), "in the proposal"))
    await driver.editor.show_message("Grüße")
    await eventually_async(lambda: driver.has_message("Grüße"), what="the message is there")
    driver.emacs.terminal.press("\x03il")
    await _eventually(driver, "(buffer-name (window-buffer (selected-window)))", "*isthmus protocol*")
    log = await driver.emacs.evaluate("(buffer-string)")
    for text in ("companion/ready", '"TOKEN":"..."', '"no_proxy":"..."', "editor/openDiff", str(path), "Grüße"):
        assert text in log
    for text in ("hush", "in the selection", "in the proposal"):
        assert text not in log
