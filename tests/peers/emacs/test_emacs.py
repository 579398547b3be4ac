"""The plugin in a real Emacs: files, focus, selections, diagnostics, saving, questions; the companion's side is here.

The contract of every editor is in tests/contract/test_editor.py, reviews are in test_emacs_reviews.py.
"""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from isthmus.ide.editor import (
    Diagnostic,
    EditorError,
    FileMentioned,
    OpenFile,
    Position,
    Range,
    Severity,
    WorkspaceChanged,
)
from support.editing import review
from support.emacs import EmacsDriver, lisp_string
from support.neovim import Heard
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

LINES = "one\ntwo\nthree\n"


def _file(workspace: Path, name: str = "a.py", text: str | bytes = LINES) -> Path:
    path = workspace / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


async def _active(driver: EmacsDriver) -> OpenFile | None:
    return next((file for file in await driver.editor.open_files() if file.is_active), None)


async def _selection(driver: EmacsDriver) -> tuple[Range, str] | None:
    file = await _active(driver)
    assert file is not None
    return (file.selection.range, file.selection.text) if file.selection is not None else None


async def test_only_local_files_are_open_files(driver: EmacsDriver, workspace: Path) -> None:
    await driver.open(_file(workspace))
    await driver.emacs.evaluate('(progn (dired default-directory) (get-buffer-create " hidden") (eshell) t)')
    await driver.emacs.evaluate('(with-current-buffer "*scratch*" (setq buffer-file-name "/ssh:nowhere:/a") t)')
    assert [file.path for file in await driver.editor.open_files()] == [str(workspace / "a.py")]


async def test_a_path_served_by_a_machine_or_a_program_is_refused_before_emacs_asks_them(
    driver: EmacsDriver, workspace: Path
) -> None:
    called = workspace / "called"
    for name in ("ssh", "sudo"):
        program = workspace / name
        program.write_text(f"#!/bin/sh\necho called >>{called}\nexit 1\n", encoding="utf-8")
        program.chmod(0o700)
    folder = lisp_string(str(workspace))
    await driver.emacs.evaluate(
        f'(progn (push {folder} exec-path) (setenv "PATH" (concat {folder} ":" (getenv "PATH"))) t)'
    )
    for path in ("/ssh:nowhere:/etc/passwd", "/sudo::/etc/shadow", "/ssh:user@nowhere|sudo:nowhere:/x"):
        with pytest.raises(EditorError, match="not a file on this machine"):
            await driver.editor.open_diff(review(path, "new\n"))
        with pytest.raises(EditorError, match="not a file on this machine"):
            await driver.editor.diagnostics(path)
        with pytest.raises(EditorError, match="not a file on this machine"):
            await driver.editor.text(path)
    assert not called.exists()


async def test_what_is_encrypted_is_not_decrypted_for_an_agent(driver: EmacsDriver, workspace: Path) -> None:
    with pytest.raises(EditorError, match="is encrypted; only the user may open it"):
        await driver.editor.open_file(str(_file(workspace, "secret.gpg")))
    assert await driver.editor.open_files() == ()
    await driver.editor.open_diff(review(str(workspace / "secret.gpg"), "new\n"))
    left = "(with-current-buffer (isthmus-review-current (car isthmus--reviews)) (buffer-string))"
    assert await driver.emacs.evaluate(left) == LINES


async def test_a_file_is_active_while_the_focus_is_in_something_that_is_no_file(
    driver: EmacsDriver, workspace: Path
) -> None:
    await driver.open(_file(workspace, text="x = 1\n" * 30))
    await driver.select(Range(Position(3, 2), Position(3, 2)))
    before = await _active(driver)
    await driver.emacs.evaluate('(progn (switch-to-buffer-other-window "*scratch*") t)')
    assert await _active(driver) == before
    assert before is not None
    assert (before.cursor, before.language_id, before.line_count) == (Position(3, 2), "python", 31)


async def test_what_the_user_does_with_keys_is_told(driver: EmacsDriver, heard: Heard, workspace: Path) -> None:
    path = _file(workspace)
    driver.emacs.terminal.press(f"\x18\x06{path}\r")
    await eventually_async(lambda: _active(driver), what="the file is active")
    await eventually_async(lambda: heard.events, what="it is told")
    count = len(heard.events)
    driver.emacs.terminal.press("\x0e")  # C-n
    await eventually_async(lambda: len(heard.events) > count, what="the move is told")
    file = await _active(driver)
    assert file is not None
    assert file.cursor == Position(1, 0)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("(progn (goto-char 1) (push-mark 6 t t) t)", (((0, 0), (1, 1)), "one\nt")),
        ("(progn (goto-char 2) (rectangle-mark-mode 1) (goto-char 7) t)", (((0, 1), (1, 2)), "n\nw")),
        ("(progn (narrow-to-region 5 9) (goto-char 5) (push-mark 8 t t) t)", (((1, 0), (1, 3)), "two")),
        (
            '(progn (switch-to-buffer (make-indirect-buffer (current-buffer) "clone"))'
            " (goto-char 5) (push-mark 8 t t) t)",
            (((1, 0), (1, 3)), "two"),
        ),
        ("(progn (goto-char 5) (push-mark 5 t t) t)", None),
    ],
    ids=["region", "rectangle", "narrowed", "indirect", "empty"],
)
async def test_every_kind_of_region_is_told(
    driver: EmacsDriver, workspace: Path, code: str, expected: tuple[tuple[tuple[int, int], ...], str] | None
) -> None:
    await driver.open(_file(workspace))
    await driver.emacs.evaluate(code)
    found = await _selection(driver)
    if expected is None:
        assert found is None
    else:
        ends, text = expected
        assert found == (Range(*(Position(*end) for end in ends)), text)


@pytest.mark.parametrize("name", [b"with space & per%cent.py", "über 😀.py".encode(), b"latin-\xfc.py"], ids=repr)
async def test_every_file_name_comes_as_it_is(driver: EmacsDriver, workspace: Path, name: bytes) -> None:
    path = _file(workspace, os.fsdecode(name))
    await driver.editor.open_file(str(path))
    assert [file.path for file in await driver.editor.open_files()] == [str(path)]
    assert await driver.editor.text(str(path)) == LINES


async def test_a_link_is_not_resolved(driver: EmacsDriver, workspace: Path) -> None:
    real = _file(workspace)
    link = workspace / "link.py"
    link.symlink_to(real)
    await driver.open(link)
    assert [file.path for file in await driver.editor.open_files()] == [str(link)]


@pytest.mark.parametrize(
    "data",
    [b"a\r\nb\r\n", b"\xef\xbb\xbfa\nb", b"a\rb\r", "ä\n".encode("latin-1"), b"a\r\nb\n", b"nul\0\n", b""],
    ids=repr,
)
async def test_the_text_is_that_of_the_file(driver: EmacsDriver, workspace: Path, data: bytes) -> None:
    path = _file(workspace, "a.txt", data)
    await driver.open(path)
    expected = data.decode("latin-1" if b"\xe4" in data else "utf-8")
    assert await driver.editor.text(str(path)) == expected


async def test_the_projects_of_open_files_are_workspace_folders(
    driver: EmacsDriver, heard: Heard, workspace: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    await driver.open(_file(project / "src"))
    await eventually_async(lambda: WorkspaceChanged() in heard.events, what="the folders are told")
    assert await driver.editor.workspace_folders() == (str(workspace), str(project))


async def test_the_lines_of_the_region_or_the_file_are_mentioned(
    driver: EmacsDriver, heard: Heard, workspace: Path
) -> None:
    path = _file(workspace)
    await driver.open(path)
    driver.emacs.terminal.press("\x1bxisthmus-mention\r")
    await eventually_async(lambda: FileMentioned(str(path)) in heard.events, what="the file is mentioned")
    driver.emacs.terminal.press("\x00\x0e\x0e\x1bxisthmus-mention\r")  # C-SPC C-n C-n
    await eventually_async(lambda: FileMentioned(str(path), 0, 1) in heard.events, what="the lines are mentioned")


async def test_a_file_is_shown_at_a_place_and_selected(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace, text="x = '😀é'\n")
    await driver.editor.open_file(str(path), Range(Position(0, 5), Position(0, 8)))
    assert await _selection(driver) == (Range(Position(0, 5), Position(0, 8)), "😀é")
    assert await driver.emacs.evaluate("(list (point) (buffer-name))") == [6, "a.py"]


async def test_opening_a_file_never_asks(driver: EmacsDriver, workspace: Path) -> None:
    real = _file(workspace, "real.py", '# -*- eval: (error "run"); unknown-variable: 1 -*-\n')
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    subprocess.run(["git", "-C", str(workspace), "add", "real.py"], check=True)
    (workspace / "elsewhere").mkdir()
    link = workspace / "elsewhere" / "link.py"
    link.symlink_to(real)  # C-x C-f asks whether to follow a link into a repository
    await driver.emacs.evaluate("(setq large-file-warning-threshold 10)")
    await driver.editor.open_file(str(link))
    assert await driver.emacs.evaluate("(list (minibuffer-depth) (buffer-name))") == [0, "link.py"]


async def test_a_user_in_the_minibuffer_is_left_there(driver: EmacsDriver, workspace: Path) -> None:
    one, two = _file(workspace, "one.py"), _file(workspace, "two.py")
    await driver.open(one)
    driver.emacs.terminal.press("\x18\x06half a na")
    await driver.emacs.shows("half a na")
    await driver.editor.open_file(str(two))
    await driver.editor.show_message("An agent says hello")
    driver.emacs.terminal.press("me")
    await driver.emacs.shows("half a name")
    assert {file.path for file in await driver.editor.open_files()} == {str(one), str(two)}
    await driver.emacs.quits("half a name")
    await eventually_async(lambda: _is_active(driver, two), what="the file that was shown meanwhile")


async def _is_active(driver: EmacsDriver, path: Path) -> bool:
    file = await _active(driver)
    return file is not None and file.path == str(path)


async def test_saving_keeps_how_the_file_is_written(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace, "a.txt", b"\xef\xbb\xbfone\r\ntwo")
    await driver.open(path)
    await driver.emacs.evaluate('(progn (goto-char (point-max)) (insert "\\nthree") t)')
    await driver.editor.save(str(path))
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\nthree"


async def test_saving_never_overwrites_what_changed_on_disk(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace)
    await driver.open(path)
    await driver.type_over("mine\n")
    path.write_text("theirs\n")
    with pytest.raises(EditorError, match="changed on disk"):
        await driver.editor.save(str(path))
    assert path.read_text() == "theirs\n"
    assert await driver.editor.text(str(path)) == "mine\n"


async def test_saving_never_changes_the_encoding(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace, "a.txt", "ä\n".encode("latin-1"))
    await driver.open(path)
    await driver.type_over("not in Latin-1: 😀\n")
    with pytest.raises(EditorError, match="cannot be written as iso-latin-1"):
        await driver.editor.save(str(path))
    assert path.read_bytes() == "ä\n".encode("latin-1")


async def test_diagnostics_of_flymake_are_told_in_utf16_units(driver: EmacsDriver, workspace: Path) -> None:
    path = _file(workspace, text="x = '😀'\nbad\n")
    await driver.open(path)
    await driver.emacs.evaluate(
        """(progn
             (require 'flymake)
             (setq-local flymake-diagnostic-functions
               (list (defun my-linter (report &rest _)
                 (funcall report (list
                   (flymake-make-diagnostic (current-buffer) 6 7 :note "a face")
                   (flymake-make-diagnostic (current-buffer) 9 12 :error "bad thing"))))))
             (flymake-mode 1)
             (flymake-start)
             t)"""
    )

    async def found() -> tuple[Diagnostic, ...]:
        return await driver.editor.diagnostics(str(path))

    await eventually_async(found, what="diagnostics")
    face = Range(Position(0, 5), Position(0, 7))
    bad = Range(Position(1, 0), Position(1, 3))
    assert set(await driver.editor.diagnostics()) == {
        Diagnostic(str(path), face, Severity.INFORMATION, "a face", "my-linter"),
        Diagnostic(str(path), bad, Severity.ERROR, "bad thing", "my-linter"),
    }


@pytest.mark.parametrize(("keys", "answer"), [("y", True), ("n", False), ("\x18k\r", False)], ids=["yes", "no", "kill"])
async def test_a_question_is_answered_in_its_own_window_and_takes_no_focus(
    driver: EmacsDriver, workspace: Path, keys: str, answer: bool
) -> None:
    path = _file(workspace, text="")
    await driver.open(path)
    question = asyncio.create_task(driver.editor.confirm("Claude Code wants to run code", "print(42)\n"))
    await driver.emacs.shows("print(42)")
    driver.emacs.terminal.press("yny")
    await eventually_async(lambda: driver.has_text(path, "yny"), what="the keys go where they went before")
    assert not question.done()
    driver.emacs.terminal.press("\x18o" + keys)
    assert await asyncio.wait_for(question, 30) is answer
    await eventually_async(lambda: _nobody_asks(driver), what="the question is gone")


@pytest.mark.parametrize("by", ["\x18oy", "\x1bxisthmus-answer\ry"], ids=["key", "command"])
async def test_a_yes_counts_once_all_of_the_question_was_on_the_screen(driver: EmacsDriver, by: str) -> None:
    text = "\n".join(f"step {number};" for number in range(1, 121))
    question = asyncio.create_task(driver.editor.confirm("May I?", text))
    await driver.emacs.shows("May I?")
    driver.emacs.terminal.press(by)
    await driver.emacs.shows("not all of the question was on the screen")
    assert not question.done()

    def reads_on() -> bool:
        driver.emacs.terminal.press("y")
        return question.done() or "step 120;" in driver.emacs.terminal.screen

    driver.emacs.terminal.press("yyyy")  # a held key goes no further
    await driver.emacs.evaluate("(setq isthmus--page-seconds 0)")
    await eventually_async(reads_on, what="the end of the question")
    for _ in range(2):
        driver.emacs.terminal.press("y")
    assert await asyncio.wait_for(question, 30) is True


async def _nobody_asks(driver: EmacsDriver) -> bool:
    return not any("asks" in name for name in await driver.emacs.buffers())


async def test_a_question_that_nobody_needs_any_more_is_closed(driver: EmacsDriver) -> None:
    question = asyncio.create_task(driver.editor.confirm("May I?", "rm -r build"))
    await driver.emacs.shows("rm -r build")
    driver.emacs.terminal.press("\x1bxisthmus-answer\r")
    await driver.emacs.shows("(y or n)")
    question.cancel()
    await eventually_async(lambda: _nobody_asks(driver), what="the question is gone")
    driver.emacs.terminal.press("y")
    await eventually_async(lambda: _is_free(driver), what="the prompt is over")


async def test_the_oldest_question_is_answered_by_command_after_others_in_windows(
    driver: EmacsDriver,
) -> None:
    first = asyncio.create_task(driver.editor.confirm("May I build?", "make"))
    await driver.emacs.shows("May I build?")
    driver.emacs.terminal.press("\x18oy")
    assert await asyncio.wait_for(first, 30)
    second = asyncio.create_task(driver.editor.confirm("May I clean?", "make clean"))
    await driver.emacs.shows("May I clean?")
    driver.emacs.terminal.press("\x1bxisthmus-answer\r")
    await driver.emacs.shows("(y or n)")
    driver.emacs.terminal.press("y")
    assert await asyncio.wait_for(second, 30)


async def _is_free(driver: EmacsDriver) -> bool:
    return await driver.emacs.evaluate("(minibuffer-depth)") == 0


async def test_terminals_have_the_variables(driver: EmacsDriver) -> None:
    await driver.editor.set_terminal_environment({"ONE": "1 = eins", "HOME": None})
    driver.emacs.terminal.press("\x1b!echo [$ONE] [$HOME]\r")
    await driver.emacs.shows("[1 = eins] []")


async def test_terminals_have_the_variables_as_soon_as_emacs_says_that_it_is_found(driver: EmacsDriver) -> None:
    driver.editor.announce({"ONE": "1 = eins"}, [])
    await driver.emacs.shows("agents can find this Emacs")
    driver.emacs.terminal.press("\x1b!echo [$ONE]\r")
    await driver.emacs.shows("[1 = eins]")
