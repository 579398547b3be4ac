"""Files that an agent writes without a review are read again in Emacs; diagnostics are those for the new text."""

import json
from pathlib import Path

import pytest

from support.claude_cli import claude_cli
from support.emacs import AT_ONCE, FLYMAKE, EmacsDriver, RunningEmacs, lisp_string, running_emacs
from support.programs import require
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NUMBERED = "".join(f"line {number}\n" for number in range(1, 201))


async def test_point_marks_narrowing_windows_and_undo_stay(driver: EmacsDriver, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text(NUMBERED)
    await driver.open(path)
    view = "(list (point) (window-start) (mark t) (line-number-at-pos (marker-position kept)) (buffer-narrowed-p))"
    await driver.emacs.evaluate(
        """(progn (goto-line 110) (recenter 3) (push-mark (+ (point) 5) t)
             (setq kept (copy-marker (save-excursion (goto-line 190) (point))))
             (set-window-point (split-window) 1)
             (narrow-to-region (save-excursion (goto-line 50) (point)) (point-max)) (redisplay t) t)"""
    )
    before = await driver.emacs.evaluate(view)
    path.write_text(NUMBERED.replace("line 150\n", "LINE 150, longer\n"))
    await driver.editor.reload([str(path)])
    assert "LINE 150, longer\n" in (await driver.editor.text(str(path)) or "")
    assert await driver.emacs.evaluate(view) == before
    await driver.emacs.evaluate("(progn (undo-boundary) (undo) t)")
    assert await driver.editor.text(str(path)) == NUMBERED


async def test_the_user_can_switch_it_off(driver: EmacsDriver, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("old\n")
    await driver.open(path)
    await driver.emacs.evaluate("(progn (setq isthmus-reload-files nil) t)")
    path.write_text("a new text\n")
    assert await driver.editor.reload([str(path)]) == ()
    assert await driver.editor.text(str(path)) == "old\n"


async def test_a_conflict_is_told_once(driver: EmacsDriver, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("old\n")
    await driver.open(path)
    await driver.type_over("mine\n")
    for text in ("a new text\n", "a newer text\n"):
        path.write_text(text)
        await driver.editor.reload([str(path)])
    count = '(with-current-buffer "*Messages*" (how-many "changed on disk" (point-min)))'
    assert await driver.emacs.evaluate(count) == 1
    assert await driver.editor.text(str(path)) == "mine\n"


async def test_what_an_agent_writes_is_shown_and_its_diagnostics_are_of_the_new_text(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("wrong old\n")
    program = lisp_string(str(require("isthmus")))
    async with running_emacs(workspace, f"{AT_ONCE} (setq isthmus-program {program}) (isthmus-mode 1)") as running:
        await running.shows("agents can find this Emacs")
        await running.evaluate(f"(progn (find-file {lisp_string(str(path))}) t)")
        await running.evaluate(FLYMAKE)
        async with claude_cli(workspace) as cli:
            path.write_text("new\n")
            await _shows(running, "new\n")

            async def found(uri: str) -> list[str]:
                content = json.loads(await cli.text("getDiagnostics", {"uri": uri}))
                return [each["message"] for file in content for each in file["diagnostics"]]

            path.write_text("wrong newer\n")
            assert await found(path.as_uri()) == ["wrong newer"]
            path.write_text("right\n")
            assert await found(path.as_uri()) == []
            await _shows(running, "right\n")
        await running.quit()


async def _shows(running: RunningEmacs, text: str) -> None:
    async def shown() -> bool:
        return await running.evaluate('(with-current-buffer "a.py" (buffer-string))') == text

    await eventually_async(shown, what=f"the buffer has {text!r}")
