import os
import stat
import sys
from pathlib import Path

import pytest

from isthmus.terminal.interactive.editing import TextEditorError, edit_text

pytestmark = pytest.mark.anyio


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file with the code of an $EDITOR, which the test writes; `path` is the file to edit."""
    program = tmp_path / "an editor.py"
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{program}'")
    return program


def does(program: Path, *lines: str) -> None:
    program.write_text("\n".join(("import pathlib, sys", "path = pathlib.Path(sys.argv[1])", *lines)), "utf-8")


async def test_the_text_comes_back_as_the_editor_left_it(editor: Path) -> None:
    does(editor, "path.write_bytes(path.read_bytes().replace(b'one', b'eins'))")
    assert await edit_text("one\r\ntwo\n", "a.txt") == "eins\r\ntwo\n"


async def test_a_final_newline_that_the_editor_adds_is_no_edit(editor: Path) -> None:
    does(editor, "path.write_bytes(path.read_bytes() + b'\\n')")
    assert await edit_text("no newline", "a.txt") == "no newline"
    assert await edit_text("newline\n", "a.txt") == "newline\n\n"


async def test_the_file_is_private_keeps_its_ending_and_is_gone_afterwards(editor: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    does(editor, f"pathlib.Path({str(seen)!r}).write_text(f'{{path}}\\n{{path.stat().st_mode}}')")
    await edit_text("x", "../evil dir/-name;rm.py")
    path, mode = seen.read_text("utf-8").split("\n")
    assert Path(path).name == "name_rm.py"
    assert stat.S_IMODE(int(mode)) == 0o600
    assert not Path(path).parent.exists()


async def test_an_editor_that_fails_is_named(editor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    does(editor, "sys.exit(3)")
    with pytest.raises(TextEditorError, match="status 3"):
        await edit_text("x", "a.txt")
    does(editor, "path.write_bytes(b'\\xff')")
    with pytest.raises(TextEditorError, match="UTF-8"):
        await edit_text("x", "a.txt")
    monkeypatch.setenv("EDITOR", "/no/such/editor -w")
    with pytest.raises(TextEditorError, match=r"cannot start the editor '/no/such/editor'.*set EDITOR"):
        await edit_text("x", "a.txt")
    monkeypatch.setenv("EDITOR", "'")
    with pytest.raises(TextEditorError, match="not a command"):
        await edit_text("x", "a.txt")


async def test_without_any_editor_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not os.environ.get("EDITOR")
    with pytest.raises(TextEditorError, match="set EDITOR"):
        await edit_text("x", "a.txt")


async def test_no_program_that_asks_which_editor_to_take_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, script in {"sensible-editor": "exit 9", "vi": 'echo from vi > "$1"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await edit_text("one", "a.txt") == "from vi\n"
