"""The twelve tools of the Claude IDE protocol over a real socket, called by a client that imitates Claude Code."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.jupyter import editor as jupyter
from isthmus.ide.control import control_client
from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from isthmus.ide.options import CompanionOptions
from support.claude_cli import CallError, ClaudeCli, claude_cli
from support.companion import RunningCompanion, attached_agent, running_companion, running_host
from support.jupyter import shared_jupyter
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG image of one pixel, base64."""


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a b.py"
    path.write_bytes("one\ntwo 😀\nthree\n".encode())
    return path


@pytest.fixture
async def companion(workspace: Path) -> AsyncGenerator[RunningCompanion]:
    async with running_companion(workspace) as companion:
        yield companion


@pytest.fixture
async def cli(companion: RunningCompanion, workspace: Path) -> AsyncGenerator[ClaudeCli]:
    async with claude_cli(workspace) as cli:
        yield cli


async def _json(cli: ClaudeCli, name: str, arguments: dict[str, Any] | None = None) -> Any:
    return json.loads(await cli.text(name, arguments))


async def _error(cli: ClaudeCli, name: str, arguments: dict[str, Any] | None = None) -> str:
    with pytest.raises(CallError) as raised:
        await cli.text(name, arguments)
    assert raised.value.code == 0, "a failed tool is a result, not a JSON-RPC error"
    return str(raised.value)


def _tool(cli: ClaudeCli, name: str) -> dict[str, Any]:
    (tool,) = [tool for tool in cli.tools if tool["name"] == name]
    return tool


@pytest.mark.requirement("CLD-030", "CLD-073")
async def test_the_tools_of_an_editor_without_notebooks_are_listed_with_closed_schemas(cli: ClaudeCli) -> None:
    assert [tool["name"] for tool in cli.tools] == [
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
    ]
    for tool in cli.tools:
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["inputSchema"]["$schema"] == "http://json-schema.org/draft-07/schema#"


@pytest.mark.requirement("CLD-076")
async def test_arguments_are_checked_and_unknown_tools_are_a_protocol_error(cli: ClaudeCli) -> None:
    for name, arguments, problem in (
        ("openFile", {}, "expected filePath"),
        ("openFile", {"filePath": 1}, "as a string"),
        ("saveDocument", {"filePath": "/a", "force": True}, "unknown argument 'force'"),
        ("executeCode", {"code": None}, "expected code"),
    ):
        assert problem in await _error(cli, name, arguments)
    with pytest.raises(CallError) as unknown:
        await cli.call("open_file", {})
    assert unknown.value.code == -32602
    assert await cli.request("tools/call", {"name": "getWorkspaceFolders"})  # no arguments at all


@pytest.mark.requirement("CLD-031", "CLD-032", "CLD-038", "CLD-037")
async def test_open_file_opens_it_and_makes_it_the_active_one(
    companion: RunningCompanion, cli: ClaudeCli, file: Path
) -> None:
    assert await cli.text("openFile", {"filePath": str(file), "makeFrontmost": True}) == f"Opened file: {file}"
    (opened,) = await companion.editor.open_files()
    assert (opened.path, opened.is_active) == (str(file), True)


@pytest.mark.requirement("CLD-033", "CLD-039")
async def test_open_file_in_the_background_tells_language_and_lines(
    companion: RunningCompanion, cli: ClaudeCli, file: Path
) -> None:
    described = await _json(cli, "openFile", {"filePath": str(file), "makeFrontmost": False, "preview": True})
    assert described == {"success": True, "filePath": str(file), "languageId": "python", "lineCount": 4}
    (opened,) = await companion.editor.open_files()
    assert not opened.is_active


@pytest.mark.requirement("CLD-034", "CLD-035", "CLD-036")
async def test_open_file_selects_from_one_text_to_another(cli: ClaudeCli, file: Path) -> None:
    arguments: dict[str, Any] = {"filePath": str(file), "startText": "one", "endText": "two"}
    assert await cli.text("openFile", arguments) == 'Opened file and selected text from "one" to "two"'
    assert (await cli.selects(text="one\ntwo"))["filePath"] == str(file)
    await cli.text("openFile", arguments | {"selectToEndOfLine": True})
    selection = (await cli.selects(text="one\ntwo 😀"))["selection"]
    assert selection["end"] == {"line": 1, "character": 6}  # UTF-16 units


async def test_open_file_refuses_what_is_missing_and_what_is_outside_the_workspace(
    cli: ClaudeCli, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "key"
    outside.write_text("secret\n", encoding="utf-8")
    assert "File not found" in await _error(cli, "openFile", {"filePath": str(workspace / "missing.py")})
    assert "outside the workspace" in await _error(cli, "openFile", {"filePath": str(outside), "startText": "s"})
    assert await _json(cli, "getCurrentSelection") == {"success": False, "message": "No active editor found"}


@pytest.mark.requirement("CLD-041", "CLD-042", "CLD-043", "CLD-044")
async def test_open_diff_shows_the_new_contents_for_the_file_under_the_name_of_the_tab(
    companion: RunningCompanion, cli: ClaudeCli, file: Path
) -> None:
    arguments = {
        "old_file_path": str(file),
        "new_file_path": str(file),
        "new_file_contents": "new\r\n",
        "tab_name": "✻ [Claude Code] a b.py (aaa111) ⧉",
    }
    answer = asyncio.create_task(cli.call("openDiff", arguments))
    (review,) = await _reviews(companion)
    assert (review.file_path, review.proposed, review.tab_name) == (str(file), "new\r\n", arguments["tab_name"])
    companion.editor.edit_diff(review.id, "")
    companion.editor.accept_diff(review.id)
    assert [item["text"] for item in await answer] == ["FILE_SAVED", ""]
    assert file.read_bytes() == "one\ntwo 😀\nthree\n".encode()


async def _reviews(companion: RunningCompanion) -> Any:
    return await eventually_async(lambda: companion.editor.open_reviews, what="a diff")


@pytest.mark.requirement("CLD-064", "CLD-065")
async def test_close_tab_closes_a_diff_once_or_twice_and_a_file_by_its_name(
    companion: RunningCompanion, cli: ClaudeCli, file: Path
) -> None:
    arguments = {
        "old_file_path": str(file),
        "new_file_path": str(file),
        "new_file_contents": "new\n",
        "tab_name": "a b.py (proposed)",
    }
    answer = asyncio.create_task(cli.call("openDiff", arguments))
    await _reviews(companion)
    closing = (cli.text("close_tab", {"tab_name": arguments["tab_name"]}) for _ in range(2))
    assert await asyncio.gather(*closing) == ["TAB_CLOSED", "TAB_CLOSED"]
    assert [item["text"] for item in await answer] == ["DIFF_REJECTED", arguments["tab_name"]]
    await companion.editor.open_file(str(file))
    companion.editor.edit(str(file), "typed\n")
    assert "unsaved" in await _error(cli, "close_tab", {"tab_name": "a b.py"})
    await companion.editor.save(str(file))
    assert await cli.text("close_tab", {"tab_name": "a b.py"}) == "TAB_CLOSED"
    assert await companion.editor.open_files() == ()


@pytest.mark.requirement("CLD-047", "CLD-048", "CLD-049", "CLD-077")
async def test_the_current_selection_is_what_the_editor_has_now(
    companion: RunningCompanion, cli: ClaudeCli, file: Path
) -> None:
    assert await _json(cli, "getCurrentSelection") == {"success": False, "message": "No active editor found"}
    assert _tool(cli, "getCurrentSelection")["inputSchema"]["properties"] == {}
    await companion.editor.open_file(str(file), Range(Position(1, 4), Position(1, 6)))
    assert await _json(cli, "getCurrentSelection") == {
        "success": True,
        "text": "😀",
        "filePath": str(file),
        "fileUrl": file.as_uri(),
        "selection": {
            "start": {"line": 1, "character": 4},
            "end": {"line": 1, "character": 6},
            "isEmpty": False,
        },
    }


@pytest.mark.requirement("CLD-050", "CLD-051")
async def test_the_latest_selection_outlives_the_focus_of_its_file(
    companion: RunningCompanion, cli: ClaudeCli, file: Path, workspace: Path
) -> None:
    assert await _json(cli, "getLatestSelection") == {"success": False, "message": "No selection available"}
    other = workspace / "other.py"
    other.write_text("x\n", encoding="utf-8")
    await companion.editor.open_file(str(file), Range(Position(0, 0), Position(0, 3)))
    await cli.selects(text="one")
    await companion.editor.open_file(str(other))
    await cli.selects(filePath=str(other), text="")
    latest = await _json(cli, "getLatestSelection")
    assert (latest["success"], latest["text"], latest["filePath"]) == (True, "one", str(file))


@pytest.mark.requirement("CLD-052", "CLD-053", "CLD-054")
async def test_open_editors_and_workspace_folders_are_listed(
    companion: RunningCompanion, cli: ClaudeCli, file: Path, workspace: Path
) -> None:
    assert await _json(cli, "getOpenEditors") == {"tabs": []}
    await companion.editor.open_file(str(file))
    (tab,) = (await _json(cli, "getOpenEditors"))["tabs"]
    expected = {"uri": file.as_uri(), "isActive": True, "label": "a b.py", "languageId": "python", "isDirty": False}
    assert expected.items() <= tab.items()
    folders = await _json(cli, "getWorkspaceFolders")
    entry = {"name": workspace.name, "uri": workspace.as_uri(), "path": str(workspace)}
    assert (folders["success"], folders["folders"], folders["rootPath"]) == (True, [entry], str(workspace))


@pytest.mark.requirement("CLD-055", "CLD-056", "CLD-057")
async def test_diagnostics_are_those_of_one_file_or_of_all(
    companion: RunningCompanion, cli: ClaudeCli, file: Path, workspace: Path
) -> None:
    at = Range(Position(1, 4), Position(1, 6))
    other = workspace / "other.py"
    other.write_text("x\n", encoding="utf-8")
    companion.editor.set_diagnostics(str(file), [Diagnostic(str(file), at, Severity.ERROR, "undefined", "ruff", "F1")])
    companion.editor.set_diagnostics(str(other), [Diagnostic(str(other), at, Severity.INFORMATION, "long")])
    everything = await _json(cli, "getDiagnostics")
    assert [entry["uri"] for entry in everything] == [file.as_uri(), other.as_uri()]
    assert everything[0]["diagnostics"] == [
        {
            "message": "undefined",
            "severity": "Error",
            "range": {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 6}},
            "source": "ruff",
            "code": "F1",
        }
    ]
    assert everything[1]["diagnostics"][0]["severity"] == "Info"
    assert await _json(cli, "getDiagnostics", {"uri": other.as_uri()}) == everything[1:]


@pytest.mark.requirement("CLD-058", "CLD-059", "CLD-060")
async def test_a_document_is_dirty_from_the_first_change_on(
    companion: RunningCompanion, cli: ClaudeCli, file: Path
) -> None:
    named = {"filePath": str(file)}
    not_open = {"success": False, "message": f"Document not open: {file}"}
    assert await _json(cli, "checkDocumentDirty", named) == not_open
    await companion.editor.open_file(str(file))
    clean = {"success": True, "filePath": str(file), "isDirty": False, "isUntitled": False}
    assert await _json(cli, "checkDocumentDirty", named) == clean
    companion.editor.edit(str(file), "typed\n")
    assert await _json(cli, "checkDocumentDirty", named) == clean | {"isDirty": True}


@pytest.mark.requirement("CLD-061", "CLD-062", "CLD-063")
async def test_save_document_writes_the_bytes(companion: RunningCompanion, cli: ClaudeCli, file: Path) -> None:
    named = {"filePath": str(file)}
    not_open = {"success": False, "message": f"Document not open: {file}"}
    assert await _json(cli, "saveDocument", named) == not_open
    await companion.editor.open_file(str(file))
    companion.editor.edit(str(file), "typed\r\n")
    saved = {"success": True, "filePath": str(file), "saved": True, "message": "Document saved successfully"}
    assert await _json(cli, "saveDocument", named) == saved
    assert file.read_bytes() == b"typed\r\n"


@pytest.mark.requirement("CLD-072", "CLD-071")
async def test_without_a_notebook_code_is_an_error_that_says_so(cli: ClaudeCli) -> None:
    said = await _error(cli, "executeCode", {"code": "1"})
    assert "not available in Isthmus (headless): it has no notebooks" in said
    assert "executeCode" not in [tool["name"] for tool in cli.tools]


@pytest.mark.requirement("CLD-068", "CLD-069", "CLD-070")
async def test_code_runs_in_the_kernel_of_the_open_notebook_once_the_user_said_yes(workspace: Path) -> None:
    notebook = workspace / "analysis.ipynb"
    notebook.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    async with shared_jupyter(workspace) as running:
        kernel = await running.open(notebook)
        await running.run(kernel, "pixel = " + repr(base64.b64decode(PIXEL)))
        editor = await jupyter.attach(running.file, (str(workspace),), poll_seconds=0.1)
        # The answer below comes from the process of the agent.
        options = CompanionOptions((str(workspace),), allow_agent_accept=True)
        async with running_host(editor, options), claude_cli(workspace) as cli:
            assert "avoid declaring variables" in _tool(cli, "executeCode")["description"]
            assert await _run_code(cli, "word = 'kept'", "yes") == []
            drawn = await _run_code(
                cli, "from IPython.display import Image, display\nprint(word)\ndisplay(Image(pixel))", "yes"
            )
            assert drawn == [
                {"type": "text", "text": "kept\n"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ]
            with pytest.raises(CallError, match="ZeroDivisionError"):
                await _run_code(cli, "1/0", "yes")
            with pytest.raises(CallError, match="did not allow"):
                await _run_code(cli, "word = 'lost'", "no")
            assert (await _run_code(cli, "print(word)", "yes"))[0]["text"] == "kept\n"


async def _run_code(cli: ClaudeCli, code: str, decision: str) -> list[dict[str, Any]]:
    """Call executeCode, look at the question as the user and answer it as `isthmus ide` does."""
    call = asyncio.create_task(cli.call("executeCode", {"code": code}))
    (companion,) = control_client.running()
    asked = await asyncio.to_thread(control_client.ask, companion, "questions", wait_seconds=30, wait=30)
    (question,) = asked["questions"]
    assert question["title"] == "Claude Code wants to run code in analysis.ipynb"
    assert question["text"] == code
    await asyncio.to_thread(control_client.ask, companion, "answer", id=question["id"], yes=decision == "yes")
    return await asyncio.wait_for(call, 60)


@pytest.mark.requirement("CLD-084")
async def test_tools_of_the_users_own_are_called_by_the_agents_of_both_protocols(
    workspace: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(
        "from isthmus import companion\n"
        "@companion.tool\n"
        "def shout(word: str, times: int = 1) -> str:\n"
        "    'Say it louder.'\n"
        "    return word.upper() * times\n",
        encoding="utf-8",
    )
    options = CompanionOptions((str(workspace),), tool_files=(str(tools),))
    async with running_host(HeadlessEditor((str(workspace),)), options) as (_, ready, _), claude_cli(workspace) as cli:
        listed = _tool(cli, "shout")
        assert (listed["description"], listed["inputSchema"]["required"]) == ("Say it louder.", ["word"])
        assert await cli.text("shout", {"word": "a", "times": 2}) == "AA"
        assert "word: Field required" in await _error(cli, "shout")
        token = json.loads(Path(ready.discovery_file).read_text(encoding="utf-8"))["authToken"]
        async with attached_agent(f"http://127.0.0.1:{ready.port}/mcp", token) as agent:
            assert "shout" in {tool.name for tool in (await agent.client.list_tools()).tools}
            result = await agent.client.call_tool("shout", {"word": "b"})
            (block,) = result.content
            assert block.model_dump()["text"] == "B"
