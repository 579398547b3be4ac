"""The tools for files, selections, diagnostics and saving at a headless editor, and files hidden from agents."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.claude.documents import MAXIMUM_FILE_BYTES
from isthmus.ide.editor import (
    Diagnostic,
    OpenFile,
    Position,
    Range,
    Severity,
)
from isthmus.ide.options import CompanionLimits
from support.claude_tools import ToolUser, tool_user

pytestmark = pytest.mark.anyio

TEXT = "one\ntwo 😀 zwei\nthree\n"


@pytest.fixture
def editor(workspace: Path) -> HeadlessEditor:
    return HeadlessEditor((str(workspace),))


@pytest.fixture
async def user(editor: HeadlessEditor) -> AsyncGenerator[ToolUser]:
    async with tool_user(editor) as user:
        yield user


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a b.py"
    path.write_bytes(TEXT.encode())
    return path


def _place(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


@pytest.mark.parametrize(
    ("arguments", "told", "selected"),
    [
        ({}, "Opened file: {path}", None),
        ({"startText": "", "endText": ""}, "Opened file: {path}", None),  # models send optional arguments as empty
        ({"startText": "two", "endText": ""}, 'Opened file and selected text "two"', "two"),
        ({"startText": "two"}, 'Opened file and selected text "two"', "two"),
        ({"startText": "😀", "endText": "th"}, 'Opened file and selected text from "😀" to "th"', "😀 zwei\nth"),
        ({"startText": "two", "selectToEndOfLine": True}, 'Opened file and selected text "two"', "two 😀 zwei"),
        (
            {"startText": "one", "endText": "two", "selectToEndOfLine": True},
            'Opened file and selected text from "one" to "two"',
            "one\ntwo 😀 zwei",
        ),
        ({"startText": "one\r\ntwo"}, 'Opened file and selected text "one\r\ntwo"', "one\ntwo"),
        ({"startText": "two", "endText": "one"}, 'Opened file and positioned at "two" (end text "one" not found)', ""),
        ({"startText": "four"}, 'Opened file, but text "four" not found', None),
        ({"startLine": 2}, "Opened file and selected lines 2 to 2", "two 😀 zwei"),
        ({"startLine": 1, "endLine": 2}, "Opened file and selected lines 1 to 2", "one\ntwo 😀 zwei"),
        ({"startLine": 2, "endLine": 99}, "Opened file and selected lines 2 to 3", "two 😀 zwei\nthree"),
        ({"startLine": 4}, "Opened file, but it has only 3 lines, no line 4", None),
    ],
)
async def test_open_file_says_what_it_selected_and_has_selected_it(
    user: ToolUser, file: Path, arguments: dict[str, Any], told: str, selected: str | None
) -> None:
    assert await user.text("openFile", filePath=str(file), **arguments) == told.format(path=file)
    current = await user.json("getCurrentSelection")
    assert current["filePath"] == str(file)
    assert current["text"] == (selected or "")
    if selected == "":
        assert current["selection"]["start"] == _place(1, 0)


async def test_open_file_in_the_background_describes_the_document(user: ToolUser, file: Path, workspace: Path) -> None:
    other = workspace / "page.html"
    other.write_text("<p>\n", encoding="utf-8")
    await user.text("openFile", filePath=str(file), preview=True)
    described = await user.json("openFile", filePath=str(other), makeFrontmost=False)
    assert described == {"success": True, "filePath": str(other), "languageId": "html", "lineCount": 2}
    assert (await user.json("getCurrentSelection"))["filePath"] == str(file)


async def test_open_file_searches_what_the_user_sees(user: ToolUser, editor: HeadlessEditor, file: Path) -> None:
    await editor.open_file(str(file))
    editor.edit(str(file), "unsaved words\n")
    assert await user.text("openFile", filePath=str(file), startText="words") == 'Opened file and selected text "words"'
    assert (await user.json("getCurrentSelection"))["selection"] == {
        "start": _place(0, 8),
        "end": _place(0, 13),
        "isEmpty": False,
    }


async def test_a_relative_path_is_below_the_workspace(user: ToolUser, file: Path) -> None:
    assert await user.text("openFile", filePath=file.name) == f"Opened file: {file}"


async def test_what_cannot_be_opened_is_an_error_that_says_why(user: ToolUser, workspace: Path) -> None:
    missing = workspace / "missing.py"
    assert await user.error("openFile", filePath=str(missing)) == f"File not found: {missing}"
    os.mkfifo(workspace / "pipe")
    assert "not a regular file" in await user.error("openFile", filePath=str(workspace / "pipe"))
    assert "directory" in await user.error("openFile", filePath=str(workspace))
    with (workspace / "large").open("wb") as large:
        large.truncate(MAXIMUM_FILE_BYTES + 1)
    assert str(MAXIMUM_FILE_BYTES) in await user.error("openFile", filePath=str(workspace / "large"))


async def test_files_outside_the_workspace_are_opened_by_the_user_alone(
    user: ToolUser, editor: HeadlessEditor, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n", encoding="utf-8")
    (workspace / "link.txt").symlink_to(outside)
    for path in (outside, workspace / "link.txt", workspace / ".." / outside.relative_to(workspace.parent)):
        assert "outside the workspace" in await user.error("openFile", filePath=str(path), startText="secret")
    assert await editor.open_files() == ()
    await editor.open_file(str(outside))
    assert await user.text("openFile", filePath=str(outside)) == f"Opened file: {outside}"


async def test_an_open_file_that_becomes_a_link_out_of_the_workspace_tells_nothing(
    user: ToolUser, editor: HeadlessEditor, file: Path, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\nsecret\n", encoding="utf-8")
    link = workspace / "link.txt"
    link.symlink_to(outside)
    assert "outside the workspace" in await user.error("openFile", filePath=str(link))
    link.unlink()
    link.symlink_to(file)
    for path in (link, file):
        await user.text("openFile", filePath=str(path), startLine=1, endLine=3)
        path.unlink()
        path.symlink_to(outside)
        (opened,) = [each for each in await editor.open_files() if each.path == str(path)]
        assert opened.selection is not None
        assert "secret" in opened.selection.text
        for tool in ("getCurrentSelection", "getLatestSelection", "getOpenEditors"):
            told = await user.text(tool)
            assert str(path) not in told
            assert "secret" not in told
        assert "outside the workspace" in await user.error("openFile", filePath=str(path), startText="secret")
        path.unlink()
        path.write_text("mine again\n", encoding="utf-8")
        assert (await user.json("getCurrentSelection"))["text"] == "mine again\n"


async def test_what_the_user_opened_outside_of_the_workspace_stays_visible_by_its_link(
    user: ToolUser, editor: HeadlessEditor, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("shared\n", encoding="utf-8")
    (workspace / "link.txt").symlink_to(outside)
    await editor.open_file(str(workspace / "link.txt"))
    told = await user.text("openFile", filePath=str(workspace / "link.txt"), startText="shared")
    assert told == 'Opened file and selected text "shared"'
    assert (await user.json("getCurrentSelection"))["text"] == "shared"


async def test_nothing_is_told_of_what_is_in_hidden_files(
    user: ToolUser, editor: HeadlessEditor, workspace: Path
) -> None:
    secret = workspace / ".env"
    secret.write_text("KEY=abc\n", encoding="utf-8")
    told = {await user.text("openFile", filePath=str(secret), startText=text) for text in ("KEY=a", "KEY=b")}
    assert told == {f"Opened file: {secret} (it is hidden from agents and was not searched)"}
    (opened,) = await editor.open_files()
    assert (opened.path, opened.selection) == (str(secret), None)
    described = await user.json("openFile", filePath=str(secret), makeFrontmost=False)
    assert described == {"success": True, "filePath": str(secret), "languageId": "plaintext"}
    await editor.open_file(str(secret), Range(Position(0, 0), Position(0, 7)))
    assert await user.json("getCurrentSelection") == {"success": False, "message": "No active editor found"}
    assert await user.json("getLatestSelection") == {"success": False, "message": "No selection available"}
    assert await user.json("getOpenEditors") == {"tabs": []}
    for tool in ("checkDocumentDirty", "saveDocument"):
        said = await user.json(tool, filePath=str(secret))
        assert said == {"success": False, "message": f"Document not open: {secret}"}


async def test_the_current_selection_is_the_active_files_and_the_latest_outlives_it(
    user: ToolUser, editor: HeadlessEditor, file: Path, workspace: Path
) -> None:
    assert await user.json("getCurrentSelection") == {"success": False, "message": "No active editor found"}
    assert await user.json("getLatestSelection") == {"success": False, "message": "No selection available"}
    await editor.open_file(str(file), Range(Position(1, 4), Position(1, 6)))
    selected = {
        "success": True,
        "text": "😀",
        "filePath": str(file),
        "fileUrl": file.as_uri(),
        "selection": {"start": _place(1, 4), "end": _place(1, 6), "isEmpty": False},
    }
    assert await user.json("getCurrentSelection") == selected
    assert await user.json("getLatestSelection") == selected
    other = workspace / "other.py"
    other.write_text("x\n", encoding="utf-8")
    await editor.open_file(str(other))
    current = await user.json("getCurrentSelection")
    assert (current["filePath"], current["text"], current["selection"]["isEmpty"]) == (str(other), "", True)
    assert await user.json("getLatestSelection") == selected


async def test_open_editors_have_every_key_that_vs_code_gives(
    user: ToolUser, editor: HeadlessEditor, file: Path
) -> None:
    await editor.open_file(str(file), Range(Position(0, 0), Position(0, 3)))
    editor.edit(str(file), "one\n")
    assert await user.json("getOpenEditors") == {
        "tabs": [
            {
                "uri": file.as_uri(),
                "isActive": True,
                "isPinned": False,
                "isPreview": False,
                "isDirty": True,
                "label": "a b.py",
                "groupIndex": 0,
                "viewColumn": 1,
                "isGroupActive": True,
                "fileName": str(file),
                "languageId": "python",
                "lineCount": 2,
                "isUntitled": False,
                "selection": {"start": _place(0, 0), "end": _place(0, 3), "isReversed": False},
            }
        ]
    }


async def test_workspace_folders_have_names_uris_and_a_root(user: ToolUser, workspace: Path) -> None:
    assert await user.json("getWorkspaceFolders") == {
        "success": True,
        "folders": [{"name": workspace.name, "uri": workspace.as_uri(), "path": str(workspace)}],
        "rootPath": str(workspace),
    }


async def test_diagnostics_are_grouped_by_file_with_their_severities_as_words(
    user: ToolUser, editor: HeadlessEditor, file: Path, workspace: Path
) -> None:
    at = Range(Position(1, 4), Position(1, 6))
    other = workspace / "other.py"
    other.write_text("x\n", encoding="utf-8")
    found = [Diagnostic(str(file), at, severity, severity.value) for severity in Severity]
    found.append(Diagnostic(str(file), at, Severity.ERROR, "undefined", "ruff", "F821"))
    editor.set_diagnostics(str(file), found)
    editor.set_diagnostics(str(other), [Diagnostic(str(other), at, Severity.HINT, "unused")])
    shown = {"start": _place(1, 4), "end": _place(1, 6)}
    of_file, of_other = await user.json("getDiagnostics")
    assert of_file["uri"] == file.as_uri()
    assert [entry["severity"] for entry in of_file["diagnostics"]] == ["Error", "Warning", "Info", "Hint", "Error"]
    assert of_file["diagnostics"][-1] == {
        "message": "undefined",
        "severity": "Error",
        "range": shown,
        "source": "ruff",
        "code": "F821",
    }
    assert of_other["diagnostics"] == [{"message": "unused", "severity": "Hint", "range": shown}]
    assert await user.json("getDiagnostics", uri=other.as_uri()) == [of_other]


async def test_the_uri_of_one_file_comes_back_as_it_was_sent(
    user: ToolUser, editor: HeadlessEditor, file: Path
) -> None:
    await editor.open_file(str(file))
    careless = f"file://{file}"
    assert await user.json("getDiagnostics", uri=careless) == [{"uri": careless, "diagnostics": []}]


async def test_a_file_that_is_not_open_has_no_diagnostics_to_be_told(
    user: ToolUser, file: Path, tmp_path: Path
) -> None:
    # Agents ask after each edit, also about files that are not on the screen.
    assert await user.json("getDiagnostics", uri=file.as_uri()) == [{"uri": file.as_uri(), "diagnostics": []}]
    assert await user.json("getDiagnostics") == []
    outside = tmp_path / "outside.py"
    assert (await user.error("getDiagnostics", uri=outside.as_uri())).startswith(f"File not open: {outside}")


@pytest.mark.parametrize("tool", ["openFile", "getDiagnostics", "saveDocument", "checkDocumentDirty"])
async def test_a_path_that_no_file_can_have_is_refused_in_a_short_answer(user: ToolUser, tool: str) -> None:
    said = await user.error(tool, **{"uri" if tool == "getDiagnostics" else "filePath": "/" + "x" * 100_000})
    assert "as the path of a file, received '/xxx" in said
    assert len(said) < 500


async def test_a_long_text_that_is_looked_for_comes_back_cut(user: ToolUser, file: Path) -> None:
    said = await user.text("openFile", filePath=str(file), startText="x" * 100_000)
    assert said.startswith('Opened file, but text "xxx')
    assert len(said) < 500


class HangingEditor(HeadlessEditor):
    """An editor that stops answering when the test says so."""

    hangs = False

    async def open_files(self) -> tuple[OpenFile, ...]:
        await self._answer()
        return await super().open_files()

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        await self._answer()
        return await super().diagnostics(path)

    async def _answer(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()


@pytest.mark.slow
async def test_diagnostics_of_an_editor_that_hangs_are_an_error_and_not_waited_for(workspace: Path, file: Path) -> None:
    editor = HangingEditor((str(workspace),))
    async with tool_user(editor, limits=CompanionLimits()) as user:
        assert await user.json("getDiagnostics") == []
        editor.hangs = True
        assert "within 0.9 s" in await user.error("getDiagnostics")
        assert "within 0.9 s" in await user.error("getDiagnostics", uri=file.as_uri())


async def test_dirty_documents_are_known_and_saved_byte_for_byte(
    user: ToolUser, editor: HeadlessEditor, workspace: Path
) -> None:
    path = workspace / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n")
    not_open = {"success": False, "message": f"Document not open: {path}"}
    assert await user.json("checkDocumentDirty", filePath=str(path)) == not_open
    assert await user.json("saveDocument", filePath=str(path)) == not_open
    await editor.open_file(str(path))
    clean = {"success": True, "filePath": str(path), "isDirty": False, "isUntitled": False}
    assert await user.json("checkDocumentDirty", filePath=str(path)) == clean
    editor.edit(str(path), "two\r\nthree")
    assert await user.json("checkDocumentDirty", filePath=str(path)) == clean | {"isDirty": True}
    assert await user.json("saveDocument", filePath=str(path)) == {
        "success": True,
        "filePath": str(path),
        "saved": True,
        "message": "Document saved successfully",
    }
    assert path.read_bytes() == b"\xef\xbb\xbftwo\r\nthree"
    assert await user.json("checkDocumentDirty", filePath=str(path)) == clean


async def test_a_document_that_cannot_be_written_is_told_with_the_reason(
    user: ToolUser, editor: HeadlessEditor, workspace: Path
) -> None:
    path = workspace / "latin.txt"
    path.write_bytes("ä\n".encode("latin-1"))
    await editor.open_file(str(path))
    editor.edit(str(path), "→\n")
    said = await user.json("saveDocument", filePath=str(path))
    assert said["success"] is False
    assert str(path) in said["message"]
    assert path.read_bytes() == "ä\n".encode("latin-1")
