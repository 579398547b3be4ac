"""The tools of spec 3 at a headless editor: what they take, what they answer, and what they keep from agents."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.claude import tools as claude_tools
from isthmus.ide.claude.documents import MAXIMUM_FILE_BYTES
from isthmus.ide.claude.tools.execute_code import MAXIMUM_CODE_CHARACTERS
from isthmus.ide.editor import (
    Capability,
    Diagnostic,
    EditorError,
    Execution,
    ExecutionImage,
    ExecutionText,
    OpenFile,
    Position,
    Range,
    Severity,
)
from isthmus.ide.options import CompanionOptions
from isthmus.ide.tool_names import COMPANION_TOOLS
from support.claude_tools import ToolUser, tool_user
from support.waiting import eventually_async

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


# --- All of them --------------------------------------------------------------------------------------------------


def test_there_are_the_twelve_of_the_document_and_their_names_are_taken() -> None:
    names = [tool.name for tool in claude_tools.TOOLS]
    assert names == [
        "openFile",
        "openDiff",
        "getCurrentSelection",
        "getLatestSelection",
        "getOpenEditors",
        "getWorkspaceFolders",
        "getDiagnostics",
        "checkDocumentDirty",
        "saveDocument",
        "close_tab",
        "closeAllDiffTabs",
        "executeCode",
    ]
    assert set(names) | {"closeDiff"} == COMPANION_TOOLS


@pytest.mark.parametrize("tool", claude_tools.TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_closed_objects_of_draft_07(tool: Any) -> None:
    schema = json.loads(json.dumps(tool.input_schema))
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert isinstance(schema["properties"], dict)
    assert set(schema.get("required", [])) <= set(schema["properties"])
    assert all(described["description"] for described in schema["properties"].values())


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("openFile", {}, "expected filePath, received nothing"),
        ("openFile", {"filePath": None}, "expected filePath, received nothing"),
        ("openFile", {"filePath": 3}, "expected filePath as a string, received 3"),
        ("openFile", {"filePath": ""}, "expected filePath as the path of a file"),
        ("openFile", {"filePath": "/a\0b"}, "expected filePath as the path of a file"),
        ("openFile", {"filePath": "untitled:Untitled-1"}, "expected filePath as the path of a file"),
        ("openFile", {"filePath": "/a", "preview": "yes"}, "expected preview as a boolean"),
        ("openFile", {"filePath": "/a", "startLine": True}, "expected startLine as a whole number"),
        ("openFile", {"filePath": "/a", "startLine": 0}, "expected startLine from 1 on"),
        ("openFile", {"filePath": "/a", "startLine": 3, "endLine": 2}, "expected endLine not before startLine"),
        ("openFile", {"filePath": "/a", "endLine": 2}, "endLine needs startLine"),
        ("openFile", {"filePath": "/a", "endText": "b"}, "endText needs startText"),
        ("openFile", {"filePath": "/a", "start_text": "b"}, "unknown argument 'start_text'"),
        ("openDiff", {"old_file_path": "/a", "new_file_path": "/a", "tab_name": "t"}, "expected new_file_contents"),
        ("getOpenEditors", {"all": True}, "unknown argument 'all'; its arguments are: none"),
        ("getDiagnostics", {"uri": 1}, "expected uri as a string"),
        ("close_tab", {}, "expected tab_name"),
        ("executeCode", {}, "expected code"),
        ("executeCode", {"code": "x" * (MAXIMUM_CODE_CHARACTERS + 1)}, "expected at most"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_that_names_them(
    user: ToolUser, tool: str, arguments: dict[str, Any], problem: str
) -> None:
    said = await user.error(tool, **arguments)
    assert said.startswith(f"{tool}: ") or "needs" in said
    assert problem in said


_NASTY = (
    "\ud800", "a" * 5000, "/" + "a" * 5000, "/" + "a/" * 3000, "file:///%ff%fe", "file://", "~", ".", "..", "/", "//",
    "C:\\x", "-", "\x1b]0;title\x07", "🦄" * 300, "$HOME", "`id`", "|ls", "a\nb",
)  # fmt: skip


@pytest.mark.parametrize("tool", claude_tools.TOOLS, ids=lambda tool: tool.name)
async def test_nasty_texts_are_answered_and_break_nothing(editor: HeadlessEditor, tool: Any) -> None:
    async with tool_user(editor, CompanionOptions(show_diffs=False)) as user:
        texts = [name for name, value in tool.input_schema["properties"].items() if value["type"] == "string"]
        for nasty in _NASTY:
            result = await user.call(tool.name, **dict.fromkeys(texts, nasty))
            assert json.loads(json.dumps(result.content)) == list(result.content)
            assert await editor.open_files() == ()


async def test_what_a_newer_cli_adds_to_the_calls_it_makes_itself_does_no_harm(user: ToolUser) -> None:
    assert await user.text("closeAllDiffTabs", reason="turn") == "CLOSED_0_DIFF_TABS"
    assert await user.text("close_tab", tab_name="none", force=True) == "TAB_CLOSED"


async def test_a_uri_is_taken_for_a_path_and_the_reverse(user: ToolUser, file: Path) -> None:
    assert await user.text("openFile", uri=file.as_uri()) == f"Opened file: {file}"
    assert (await user.json("checkDocumentDirty", uri=file.as_uri()))["success"]
    assert (await user.json("saveDocument", filePath=f"file://{file}"))["success"]
    assert await user.json("getDiagnostics", filePath=str(file)) == [{"uri": file.as_uri(), "diagnostics": []}]


# --- openFile -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told", "selected"),
    [
        ({}, "Opened file: {path}", None),
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


async def test_open_file_searches_what_the_person_sees(user: ToolUser, editor: HeadlessEditor, file: Path) -> None:
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


async def test_files_outside_the_workspace_are_opened_by_the_person_alone(
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


async def test_nothing_is_told_of_what_is_in_hidden_files(
    user: ToolUser, editor: HeadlessEditor, workspace: Path
) -> None:
    secret = workspace / ".env"
    secret.write_text("KEY=abc\n", encoding="utf-8")
    told = {await user.text("openFile", filePath=str(secret), startText=text) for text in ("KEY=a", "KEY=b")}
    assert told == {f"Opened file: {secret} (it is hidden from agents: nothing was looked for in it)"}
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


# --- Selections, editors, folders ---------------------------------------------------------------------------------


async def test_the_current_selection_is_that_of_the_active_file_and_the_latest_outlives_it(
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


# --- Diagnostics --------------------------------------------------------------------------------------------------


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


async def test_a_file_that_is_not_open_has_no_diagnostics_to_be_told(user: ToolUser, file: Path) -> None:
    assert (await user.error("getDiagnostics", uri=file.as_uri())).startswith(f"File not open: {file}")
    assert await user.json("getDiagnostics") == []


# --- Dirty, save --------------------------------------------------------------------------------------------------


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


# --- Diffs and tabs -----------------------------------------------------------------------------------------------


def _diff(path: Path, contents: str, tab: str = "tab") -> dict[str, object]:
    return {
        "old_file_path": str(path),
        "new_file_path": str(path),
        "new_file_contents": contents,
        "tab_name": tab,
    }


def _texts(result: Any) -> list[str]:
    assert not result.is_error, result
    return [block["text"] for block in result.content]


@pytest.mark.parametrize("contents", ["new\r\nlines", "", "\ufeffmark\n", "😀\n"], ids=repr)
async def test_an_accepted_diff_answers_with_the_final_contents_and_writes_nothing(
    user: ToolUser, editor: HeadlessEditor, file: Path, contents: str
) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    review = await user.review()
    editor.edit_diff(review.id, contents)
    editor.accept_diff(review.id)
    assert _texts(await answer) == ["FILE_SAVED", contents]
    assert file.read_text(encoding="utf-8") == TEXT


async def test_a_rejected_diff_answers_with_the_name_of_its_tab(
    user: ToolUser, editor: HeadlessEditor, file: Path
) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    editor.reject_diff((await user.review()).id)
    assert _texts(await answer) == ["DIFF_REJECTED", "tab"]
    assert await user.text("close_tab", tab_name="tab") == "TAB_CLOSED"


async def test_a_tab_that_is_closed_while_it_waits_is_rejected_and_may_be_closed_twice(
    user: ToolUser, editor: HeadlessEditor, file: Path
) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    await user.review()
    assert await user.text("close_tab", tab_name="tab") == "TAB_CLOSED"
    assert _texts(await answer) == ["DIFF_REJECTED", "tab"]
    assert await user.text("close_tab", tab_name="tab") == "TAB_CLOSED"
    assert editor.open_reviews == ()


async def test_closing_all_diff_tabs_closes_those_of_the_client_alone(
    user: ToolUser, editor: HeadlessEditor, file: Path, workspace: Path
) -> None:
    other_user = ToolUser(user.companion)
    other_file = workspace / "other.py"
    answers = [
        user.start("openDiff", **_diff(file, "proposed\n", "first")),
        user.start("openDiff", **_diff(workspace / "new.py", "proposed\n", "second")),
    ]
    theirs = other_user.start("openDiff", **_diff(other_file, "proposed\n", "first"))
    await eventually_async(lambda: len(editor.open_reviews) == 3, what="three diffs")
    assert await user.text("closeAllDiffTabs") == "CLOSED_2_DIFF_TABS"
    assert [_texts(await answer) for answer in answers] == [["DIFF_REJECTED", "first"], ["DIFF_REJECTED", "second"]]
    (left,) = editor.open_reviews
    assert left.file_path == str(other_file)
    assert await user.text("close_tab", tab_name="first") == "TAB_CLOSED"
    assert editor.open_reviews == (left,)
    assert await other_user.text("closeAllDiffTabs") == "CLOSED_1_DIFF_TABS"
    assert _texts(await theirs) == ["DIFF_REJECTED", "first"]
    assert await user.text("closeAllDiffTabs") == "CLOSED_0_DIFF_TABS"


async def test_the_same_tab_again_rejects_the_one_before(user: ToolUser, editor: HeadlessEditor, file: Path) -> None:
    former = user.start("openDiff", **_diff(file, "first\n"))
    await user.review()
    newer = user.start("openDiff", **_diff(file, "second\n"))
    assert _texts(await former) == ["DIFF_REJECTED", "tab"]
    (review,) = await eventually_async(lambda: editor.open_reviews, what="the second diff")
    editor.accept_diff(review.id)
    assert _texts(await newer) == ["FILE_SAVED", "second\n"]


async def test_a_cancelled_call_closes_its_view(user: ToolUser, editor: HeadlessEditor, file: Path) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    await user.review()
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    await eventually_async(lambda: editor.open_reviews == (), what="the view is closed")
    assert user.companion.reviews.all() == ()


async def test_a_companion_that_shows_no_diffs_says_so(editor: HeadlessEditor, file: Path) -> None:
    async with tool_user(editor, CompanionOptions(show_diffs=False)) as user:
        assert "--no-diff" in await user.error("openDiff", **_diff(file, "proposed\n"))


async def test_what_is_no_file_cannot_be_reviewed(user: ToolUser, workspace: Path) -> None:
    assert "cannot be reviewed" in await user.error("openDiff", **_diff(workspace, "proposed\n"))


@pytest.mark.parametrize("form", ["label", "path", "uri"])
async def test_another_tab_is_a_file_that_is_closed_unless_it_has_unsaved_changes(
    user: ToolUser, editor: HeadlessEditor, file: Path, form: str
) -> None:
    name = {"label": file.name, "path": str(file), "uri": file.as_uri()}[form]
    await editor.open_file(str(file))
    editor.edit(str(file), "typed\n")
    assert "unsaved" in await user.error("close_tab", tab_name=name)
    await editor.save(str(file))
    assert await user.text("close_tab", tab_name=name) == "TAB_CLOSED"
    assert await editor.open_files() == ()


async def test_a_name_that_several_tabs_have_closes_none(
    user: ToolUser, editor: HeadlessEditor, workspace: Path
) -> None:
    paths = [workspace / folder / "a.py" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("x\n", encoding="utf-8")
        await editor.open_file(str(path))
    said = await user.error("close_tab", tab_name="a.py")
    assert all(str(path) in said for path in paths)
    assert len(await editor.open_files()) == 2


# --- executeCode --------------------------------------------------------------------------------------------------


class NotebookEditor(HeadlessEditor):
    """A headless editor with a kernel whose answers the test gives."""

    def __init__(self, folder: Path) -> None:
        super().__init__((str(folder),))
        self.ran: list[str] = []
        self.interrupted = False
        self.answer: Execution | EditorError | None = Execution()

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        return {Capability.CONFIRM: "it has no screen"}

    async def execute_code(self, code: str) -> Execution:
        self.ran.append(code)
        if self.answer is None:
            try:
                await asyncio.Event().wait()
            finally:
                self.interrupted = True
        if isinstance(self.answer, EditorError):
            raise self.answer
        assert self.answer is not None
        return self.answer


@pytest.fixture
def notebook_editor(workspace: Path) -> NotebookEditor:
    return NotebookEditor(workspace)


@pytest.fixture
async def notebook_user(notebook_editor: NotebookEditor) -> AsyncGenerator[ToolUser]:
    async with tool_user(notebook_editor) as user:
        yield user


async def _allow(user: ToolUser, yes: bool = True) -> None:
    assert user.companion.asking.answer((await user.question()).id, yes) is not None


async def test_code_runs_when_the_person_allows_it_and_its_outputs_come_in_order(
    notebook_user: ToolUser, notebook_editor: NotebookEditor, workspace: Path
) -> None:
    notebook = workspace / "analysis.ipynb"
    notebook.write_text("{}", encoding="utf-8")
    await notebook_editor.open_file(str(notebook))
    notebook_editor.answer = Execution((ExecutionText("1\n"), ExecutionImage(b"\x89PNG", "image/png")))
    answer = notebook_user.start("executeCode", code="print(1)")
    question = await notebook_user.question()
    assert question.title == "agent wants to run code in analysis.ipynb"
    assert question.text == "print(1)"
    assert notebook_editor.ran == []
    await _allow(notebook_user)
    result = await answer
    assert not result.is_error
    assert [dict(block) for block in result.content] == [
        {"type": "text", "text": "1\n"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
    ]
    assert notebook_editor.ran == ["print(1)"]


async def test_code_that_is_not_allowed_does_not_run(notebook_user: ToolUser, notebook_editor: NotebookEditor) -> None:
    answer = notebook_user.start("executeCode", code="print(1)")
    await _allow(notebook_user, yes=False)
    result = await answer
    assert result.is_error
    assert "did not allow" in result.content[0]["text"]
    assert notebook_editor.ran == []


async def test_what_the_code_raises_and_what_the_kernel_lacks_are_error_results(
    notebook_user: ToolUser, notebook_editor: NotebookEditor
) -> None:
    for kernel_says in (Execution((ExecutionText("ZeroDivisionError"),), is_error=True), EditorError("no notebook")):
        notebook_editor.answer = kernel_says
        answer = notebook_user.start("executeCode", code="1/0")
        await _allow(notebook_user)
        result = await answer
        assert result.is_error
        assert result.content[0]["text"] in ("ZeroDivisionError", "no notebook")


async def test_a_cancelled_call_interrupts_the_code_or_takes_the_question_back(
    notebook_user: ToolUser, notebook_editor: NotebookEditor
) -> None:
    answer = notebook_user.start("executeCode", code="while True: pass")
    await notebook_user.question()
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    await eventually_async(lambda: notebook_user.companion.asking.open_questions == (), what="no question")
    notebook_editor.answer = None
    answer = notebook_user.start("executeCode", code="while True: pass")
    await _allow(notebook_user)
    await eventually_async(lambda: notebook_editor.ran, what="the code runs")
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    await eventually_async(lambda: notebook_editor.interrupted, what="the interrupt")


async def test_an_editor_without_notebooks_is_not_asked_about(user: ToolUser) -> None:
    said = await user.error("executeCode", code="print(1)")
    assert said.startswith("not available in Isthmus (headless): ")
    assert user.companion.asking.open_questions == ()


# --- Custom tools -------------------------------------------------------------------------------------------------


async def test_the_persons_own_tools_are_called_beside_the_twelve(user: ToolUser) -> None:
    @user.companion.tool
    def shout(word: str) -> str:
        """Say it louder."""
        return word.upper()

    assert [tool.name for tool in claude_tools.offered_tools(user.companion)][12:] == ["shout"]
    assert await user.text("shout", word="a") == "A"
    assert await user.error("shout") == "shout: word: Field required"


# --- Editors that hang --------------------------------------------------------------------------------------------


class HangingEditor(HeadlessEditor):
    """An editor that stops answering when it is told to."""

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


async def test_diagnostics_of_an_editor_that_hangs_are_an_error_and_not_waited_for(workspace: Path, file: Path) -> None:
    editor = HangingEditor((str(workspace),))
    async with tool_user(editor) as user:
        assert await user.json("getDiagnostics") == []
        editor.hangs = True
        assert "within 0.9 s" in await user.error("getDiagnostics")
        assert "within 0.9 s" in await user.error("getDiagnostics", uri=file.as_uri())
