"""The tools of the Claude IDE protocol as a whole: their schemas, their arguments, and the limits of arguments."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.claude import tools as claude_tools
from isthmus.ide.claude.tools.execute_code import MAXIMUM_CODE_CHARACTERS
from isthmus.ide.mcp.tool_names import COMPANION_TOOLS
from isthmus.ide.options import CompanionOptions
from support.claude_tools import ToolUser, tool_user

pytestmark = pytest.mark.anyio


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
    path.write_bytes(b"one\n")
    return path


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


async def test_the_users_own_tools_are_called_beside_the_twelve(user: ToolUser) -> None:
    @user.companion.tool
    def shout(word: str) -> str:
        """Say it louder."""
        return word.upper()

    assert [tool.name for tool in claude_tools.offered_tools(user.companion)][12:] == ["shout"]
    assert await user.text("shout", word="a") == "A"
    assert await user.error("shout") == "shout: word: Field required"
