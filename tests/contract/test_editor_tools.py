"""The twelve tools of the Claude protocol at every editor in DRIVERS: each one works, or is reported as not available.

None may succeed without an effect. docs/how-to/companion-tools.md holds the same table; an editor that is added to
DRIVERS needs a column there.
"""

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide.claude.tools import TOOLS, offered_tools
from isthmus.ide.editor import Capability, Consent, Position, Range
from support.claude_tools import ToolUser, tool_user
from support.editor_driver import DRIVERS, EditorDriver
from support.extended import first_of
from support.remote_editor_driver import RemoteEditorDriver
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]

NEEDS: Mapping[str, Capability | None] = {
    "openFile": Capability.OPEN,
    "openDiff": Capability.DIFF,
    "getCurrentSelection": Capability.SELECTION,
    "getLatestSelection": Capability.SELECTION,
    "getOpenEditors": None,
    "getWorkspaceFolders": None,
    "getDiagnostics": Capability.DIAGNOSTICS,
    "checkDocumentDirty": Capability.DIRTY,
    "saveDocument": Capability.SAVE,
    "close_tab": Capability.CLOSE,
    "closeAllDiffTabs": None,
    "executeCode": Capability.EXECUTE,
}
"""The capability that an editor needs for a tool; tools without an entry work in every editor."""

NOTEBOOK: Mapping[str, object] = {
    "cells": [],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture(params=first_of(sorted(DRIVERS, key=lambda name: name == "jupyter"), count=len(DRIVERS) - 1))
async def driver(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[EditorDriver]:
    async with DRIVERS[request.param](workspace) as driver:
        yield driver


@pytest.fixture
async def user(driver: EditorDriver) -> AsyncGenerator[ToolUser]:
    async with tool_user(driver.editor) as user:
        yield user


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_bytes(b"one\ntwo\nthree\n")
    return path


async def _open(user: ToolUser, driver: EditorDriver, path: Path) -> dict[str, Any]:
    """Open a file as the user does, and wait until agents see it as the active one; return the tool's result."""
    await driver.open(path)

    async def tab() -> dict[str, Any] | None:
        tabs = (await user.json("getOpenEditors"))["tabs"]
        found = [tab for tab in tabs if os.path.realpath(tab["fileName"]) == os.path.realpath(path)]
        return found[0] if found and found[0]["isActive"] else None

    found = await eventually_async(tab, what=f"{path} is active")
    assert found is not None
    return found


async def _open_file(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    assert await user.text("openFile", filePath=str(file)) == f"Opened file: {file}"

    async def is_active() -> bool:
        return any(shown.path == str(file) and shown.is_active for shown in await driver.editor.open_files())

    await eventually_async(is_active, what="the file is active")


async def _open_diff(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    for decide, expected in ((driver.accept, ["FILE_SAVED", "one\r\n2\r\n"]), (driver.reject, ["DIFF_REJECTED", "t"])):
        answer = user.start("openDiff", **_diff(file, "one\r\n2\r\n"))
        await decide(await user.review())
        result = await answer
        assert not result.is_error
        assert [block["text"] for block in result.content] == expected
    assert file.read_bytes() == b"one\ntwo\nthree\n"


def _diff(file: Path, proposed: str) -> dict[str, object]:
    return {"old_file_path": str(file), "new_file_path": str(file), "new_file_contents": proposed, "tab_name": "t"}


async def _get_current_selection(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    await _open(user, driver, file)
    await driver.select(Range(Position(1, 0), Position(1, 3)))

    async def selected() -> dict[str, Any] | None:
        selection = await user.json("getCurrentSelection")
        return selection if selection.get("text") == "two" else None

    selection = await eventually_async(selected, what="the selection")
    assert selection == {
        "success": True,
        "text": "two",
        "filePath": str(file),
        "fileUrl": file.as_uri(),
        "selection": {
            "start": {"line": 1, "character": 0},
            "end": {"line": 1, "character": 3},
            "isEmpty": False,
        },
    }


async def _get_latest_selection(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    await _get_current_selection(user, driver, file)
    other = file.with_name("other.py")
    other.write_bytes(b"x\n")
    await _open(user, driver, other)
    latest = await user.json("getLatestSelection")
    assert (latest["text"], latest["filePath"]) == ("two", str(file))


async def _get_open_editors(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    tab = await _open(user, driver, file)
    assert (tab["label"], tab["uri"], tab["languageId"]) == ("a.py", file.as_uri(), "python")
    assert tab["lineCount"] in (3, 4)  # with or without the empty line after the last newline
    assert tab["isDirty"] is (None if Capability.DIRTY in driver.editor.unavailable else False)


async def _get_workspace_folders(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    folders = await user.json("getWorkspaceFolders")
    assert folders["success"] is True
    assert folders["rootPath"] == str(file.parent)
    entry = {"name": file.parent.name, "uri": file.parent.as_uri(), "path": str(file.parent)}
    assert folders["folders"] == [entry]


async def _get_diagnostics(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    await _open(user, driver, file)
    assert await user.json("getDiagnostics", uri=file.as_uri()) == [{"uri": file.as_uri(), "diagnostics": []}]
    assert await user.json("getDiagnostics") == []


async def _check_document_dirty(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    await _open(user, driver, file)
    clean = {"success": True, "filePath": str(file), "isDirty": False, "isUntitled": False}
    assert await user.json("checkDocumentDirty", filePath=str(file)) == clean
    await driver.type_over("changed\n")
    await eventually_async(lambda: _is_dirty(user, file), what="the file is dirty")


async def _is_dirty(user: ToolUser, file: Path) -> bool:
    return (await user.json("checkDocumentDirty", filePath=str(file)))["isDirty"]


async def _save_document(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    await _open(user, driver, file)
    await driver.type_over("changed\n")
    await eventually_async(lambda: _saved(user, file), what="the bytes are written")
    assert file.read_bytes() == b"changed\n"


async def _saved(user: ToolUser, file: Path) -> bool:
    saved = await user.json("saveDocument", filePath=str(file))
    assert saved["success"] is True
    return file.read_bytes() == b"changed\n"


async def _close_tab(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    await _open(user, driver, file)
    assert await user.text("close_tab", tab_name="a.py") == "TAB_CLOSED"

    async def is_closed() -> bool:
        return str(file) not in {shown.path for shown in await driver.editor.open_files()}

    await eventually_async(is_closed, what="the tab is closed")


async def _close_all_diff_tabs(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    assert await user.text("closeAllDiffTabs") == "CLOSED_0_DIFF_TABS"
    if Capability.DIFF in driver.editor.unavailable:
        return
    answer = user.start("openDiff", **_diff(file, "2\n"))
    review = await user.review()
    assert await user.text("closeAllDiffTabs") == "CLOSED_1_DIFF_TABS"
    assert [block["text"] for block in (await answer).content] == ["DIFF_REJECTED", "t"]
    assert await driver.editor.close_diff(review.id) is None


async def _execute_code(user: ToolUser, driver: EditorDriver, file: Path) -> None:
    notebook = file.with_name("analysis.ipynb")
    notebook.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    await driver.open(notebook)
    for code, printed in (("x = 6", ""), ("print(x * 7)", "42\n")):
        answer = user.start("executeCode", code=code)
        assert user.companion.asking.answer((await user.question()).id, Consent.YES)
        result = await answer
        if (
            isinstance(driver, RemoteEditorDriver) and result.is_error
        ):  # passed on, and the editor behind it has no notebooks
            assert result.content[0]["text"].startswith("not available in ")
            return
        assert not result.is_error, result
        assert "".join(block["text"] for block in result.content) == printed


SCENES: Mapping[str, Callable[[ToolUser, EditorDriver, Path], Awaitable[None]]] = {
    "openFile": _open_file,
    "openDiff": _open_diff,
    "getCurrentSelection": _get_current_selection,
    "getLatestSelection": _get_latest_selection,
    "getOpenEditors": _get_open_editors,
    "getWorkspaceFolders": _get_workspace_folders,
    "getDiagnostics": _get_diagnostics,
    "checkDocumentDirty": _check_document_dirty,
    "saveDocument": _save_document,
    "close_tab": _close_tab,
    "closeAllDiffTabs": _close_all_diff_tabs,
    "executeCode": _execute_code,
}
"""Checks by tool: each shows that the tool does what its name says."""


async def _arguments(user: ToolUser, driver: EditorDriver, file: Path, tool: str) -> dict[str, object]:
    """Return the arguments that a call would need to succeed if the tool were available."""
    match tool:
        case "openFile" | "checkDocumentDirty" | "saveDocument":
            await _open(user, driver, file)
            return {"filePath": str(file)}
        case "openDiff":
            return _diff(file, "2\n")
        case "getDiagnostics":
            await _open(user, driver, file)
            return {"uri": file.as_uri()}
        case "close_tab":
            await _open(user, driver, file)
            return {"tab_name": "a.py"}
        case "executeCode":
            return {"code": "1"}
        case _:
            return {}


@pytest.mark.slow
@pytest.mark.requirement("CLD-082")
@pytest.mark.parametrize("tool", SCENES)
async def test_a_tool_works_or_says_why_it_is_not_available(
    user: ToolUser, driver: EditorDriver, file: Path, tool: str
) -> None:
    reason = _reason(driver, tool)
    is_listed = tool in {offered.name for offered in offered_tools(user.companion) if offered.is_listed}
    assert is_listed == (reason is None or tool == "close_tab")  # close_tab closes diffs in every editor
    if reason is None:
        await SCENES[tool](user, driver, file)
        return
    said = await user.error(tool, **await _arguments(user, driver, file, tool))
    assert said == f"not available in {driver.editor.identity.display_name}: {reason}"


def _reason(driver: EditorDriver, tool: str) -> str | None:
    needed = NEEDS[tool]
    return driver.editor.unavailable.get(needed) if needed is not None else None


@pytest.mark.parametrize("name", sorted(DRIVERS))
async def test_the_documentation_has_the_same_table(name: str, workspace: Path) -> None:
    table = _documented()
    assert name in table, f"docs/how-to/companion-tools.md: add a column for {name} to the table of tools and editors"
    async with DRIVERS[name](workspace) as driver:
        expected = {tool: _reason(driver, tool) for tool in NEEDS}
    assert table[name] == {tool: "yes" if reason is None else "no" for tool, reason in expected.items()}
    text = " ".join((ROOT / "docs" / "how-to" / "companion-tools.md").read_text(encoding="utf-8").split())
    for reason in filter(None, expected.values()):
        assert reason in text, f"docs/how-to/companion-tools.md: say why {name} answers no"


def test_the_table_has_every_tool_and_no_other() -> None:
    names = {tool.name for tool in TOOLS}
    assert set(SCENES) == set(NEEDS) == names
    assert all(set(column) == names for column in _documented().values())


def _documented() -> dict[str, dict[str, str]]:
    """Return the table of docs/how-to/companion-tools.md: by editor, then by tool."""
    lines = (ROOT / "docs" / "how-to" / "companion-tools.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    header = next(row for row in rows if row[0] == "tool")
    body = [row for row in rows if row[0] in NEEDS and len(row) == len(header)]
    return {name: {row[0]: row[index] for row in body} for index, name in enumerate(header) if index > 0}
