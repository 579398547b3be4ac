"""An editor whose plugin is a process of its own: its identity, its encodings and newlines, its answers."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Diagnostic,
    DiagnosticsChanged,
    DiffAccepted,
    DiffEdited,
    EditorError,
    ExecutionText,
    FileMentioned,
    NotAvailableError,
    Position,
    Range,
    Severity,
    WorkspaceChanged,
)
from support.stdio_editor import StdioDriver, equals, made, review_of, stdio_driver, told
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
async def driver(workspace: Path) -> AsyncGenerator[StdioDriver]:
    async with stdio_driver(workspace) as driver:
        yield driver


async def test_the_plugin_says_who_the_editor_is(driver: StdioDriver) -> None:
    identity = driver.editor.identity
    assert (identity.name, identity.display_name) == ("test-editor", "Test Editor")
    assert identity.pid == driver.plugin.process.pid
    assert set(driver.editor.unavailable) == {Capability.EXECUTE, Capability.TERMINAL}


async def test_a_process_that_is_not_there_is_not_the_editor(workspace: Path) -> None:
    info = {"name": "ed", "displayName": "Ed", "processId": 2**22 + 1}
    async with stdio_driver(workspace, editorInfo=info) as driver:
        assert driver.editor.identity.pid == os.getppid()


async def test_what_a_plugin_lacks_is_said_in_its_words(driver: StdioDriver) -> None:
    with pytest.raises(NotAvailableError, match="not available in Test Editor: it has no notebooks"):
        await driver.editor.execute_code("1")


async def test_a_plugin_without_folders_works_where_the_companion_was_started(workspace: Path) -> None:
    async with stdio_driver(workspace, workspaceFolders=[]) as driver:
        assert await driver.editor.workspace_folders() == (str(Path.cwd()),)


async def test_folders_trust_and_mentions_are_told(driver: StdioDriver, workspace: Path) -> None:
    async with told(driver.editor) as events:
        await driver.plugin.do("tell", method="workspace/didChangeWorkspaceFolders", params={})
        await driver.plugin.do("tell", method="editor/didChangeTrust", params={"isTrusted": False})
        at = {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}}
        params = {"uri": (workspace / "ü b.py").as_uri(), "range": at}
        await driver.plugin.do("tell", method="editor/didMention", params=params)
        mention = FileMentioned(str(workspace / "ü b.py"), 1, 2)
        await eventually_async(lambda: mention in events, what="the mention is told")
        assert WorkspaceChanged() in events
    assert driver.editor.is_trusted is False
    assert await driver.editor.workspace_folders() == (str(workspace),)
    assert await driver.plugin.heard("workspace/workspaceFolders")


async def test_what_is_typed_into_a_view_is_told(driver: StdioDriver, workspace: Path) -> None:
    review = review_of(made(workspace))
    async with told(driver.editor) as events:
        await driver.editor.open_diff(review)
        await driver.edit_review(review, "mine\n")
        await eventually_async(lambda: DiffEdited("r1", "mine\n") in events, what="the text is told")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_a_place_is_the_same_in_every_encoding(workspace: Path, encoding: str) -> None:
    path = made(workspace, content="é😀x = 1\n".encode())
    async with stdio_driver(workspace, positionEncodings=[encoding]) as driver:
        await driver.editor.open_file(str(path), Range(Position(0, 3), Position(0, 3)))
        (shown,) = await driver.plugin.heard("window/showDocument")
        sent = {"utf-8": 6, "utf-16": 3, "utf-32": 2}[encoding]
        assert shown["params"]["selection"]["start"] == {"line": 0, "character": sent}


async def test_places_in_unsaved_text_are_converted_by_that_text(driver: StdioDriver, workspace: Path) -> None:
    await driver.open(made(workspace))
    await driver.type_over("😀😀\n")
    await driver.plugin.do("select", start=2, end=2)
    (file,) = await driver.editor.open_files()
    assert file.cursor == Position(0, 4)


async def test_diagnostics_are_asked_for(driver: StdioDriver, workspace: Path) -> None:
    path = made(workspace, content="😀x\n".encode())
    at = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 2}}
    await driver.plugin.do("set_diagnostics", uri=path.as_uri(), found=[{"range": at, "message": "m", "severity": 2}])
    found = Diagnostic(str(path), Range(Position(0, 2), Position(0, 3)), Severity.WARNING, "m")
    assert await driver.editor.diagnostics() == await driver.editor.diagnostics(str(path)) == (found,)


async def test_diagnostics_that_are_pushed_are_not_asked_for(workspace: Path) -> None:
    path, other = made(workspace), made(workspace, "b.py")
    at = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    async with stdio_driver(workspace, capabilities={"diagnostics": {"push": True}}) as driver:
        for file in (path, other):
            params = {"uri": file.as_uri(), "diagnostics": [{"range": at, "message": file.name}]}
            await driver.plugin.do("tell", method="textDocument/publishDiagnostics", params=params)

        async def messages(path: str | None) -> list[str]:
            return [found.message for found in await driver.editor.diagnostics(path)]

        await eventually_async(lambda: equals(messages(None), ["a.py", "b.py"]), what="both files are known")
        assert await messages(str(other)) == ["b.py"]
        cleared: dict[str, object] = {"uri": path.as_uri(), "diagnostics": []}
        await driver.plugin.do("tell", method="textDocument/publishDiagnostics", params=cleared)
        await eventually_async(lambda: equals(messages(None), ["b.py"]), what="the first is clean")
        assert not await driver.plugin.heard("workspace/diagnostic")


async def test_a_file_that_is_checked_anew_is_named_and_told(driver: StdioDriver, workspace: Path) -> None:
    path, other = made(workspace), made(workspace, "b c.py")
    for file in (path, other):
        await driver.open(file)
    await driver.plugin.do("set_diagnostics", uri=other.as_uri(), found=[])
    async with told(driver.editor) as events:
        assert await driver.editor.reload([str(path), str(other)]) == (str(other),)
        await driver.plugin.do("tell", method="editor/didChangeDiagnostics", params={"uri": other.as_uri()})
        await eventually_async(lambda: DiagnosticsChanged((str(other),)) in events, what="the event")


async def test_an_editor_that_knows_only_lf_changes_no_other_line(workspace: Path) -> None:
    path = made(workspace, content=b"\xef\xbb\xbfone\r\ntwo\r\n")
    async with stdio_driver(workspace, newlines="lf") as driver, told(driver.editor) as events:
        await driver.open(path)
        await driver.type_over("one\n2\n")
        assert await driver.editor.text(str(path)) == "one\r\n2\r\n"
        review = review_of(path, "\ufeffone\r\nTWO\r\n")
        await driver.editor.open_diff(review)
        await driver.edit_review(review, "one\nTHREE\n")
        await driver.accept(review)
        accepted = DiffAccepted("r1", "\ufeffone\r\nTHREE\r\n")
        await eventually_async(lambda: accepted in events, what="accepted in the form of the file")


async def test_a_question_is_a_no_unless_it_is_a_yes(driver: StdioDriver) -> None:
    for answer, expected in (({"title": "Yes"}, True), ({"title": "No"}, False), (None, False), ("Yes", False)):
        await driver.plugin.do("answer", name="question", value=answer)
        assert await driver.editor.confirm("May it?", "x" * 10) is expected
    question = (await driver.plugin.heard("window/showMessageRequest"))[0]["params"]
    assert question["message"] == "May it?\n\nxxxxxxxxxx"
    assert question["actions"] == [{"title": "Yes"}, {"title": "No"}]


async def test_a_question_that_nobody_needs_any_more_is_closed(driver: StdioDriver) -> None:
    await driver.plugin.do("be_silent", method="window/showMessageRequest", on=True)
    asking = asyncio.create_task(driver.editor.confirm("May it?", ""))
    (question,) = await driver.plugin.hears("window/showMessageRequest")
    asking.cancel()
    await asyncio.wait({asking})
    (cancelled,) = await driver.plugin.hears("$/cancelRequest")
    assert cancelled["params"] == {"id": question["id"]}


async def test_code_runs_and_terminals_are_set(workspace: Path) -> None:
    async with stdio_driver(workspace, capabilities={"execute": True, "terminal": True}) as driver:
        await driver.plugin.do("answer", name="execution", value={"outputs": [{"type": "text", "text": "2"}]})
        assert await driver.editor.execute_code("1+1") == CodeExecution((ExecutionText("2"),))
        await driver.editor.set_terminal_environment({"A": "1", "B": None})
        (told,) = await driver.plugin.heard("editor/setTerminalEnvironment")
        assert told["params"] == {"variables": {"A": "1", "B": None}}


async def test_an_error_of_the_plugin_is_told_in_its_words(driver: StdioDriver, workspace: Path) -> None:
    path = made(workspace)
    await driver.plugin.do("be_silent", method="editor/openFiles", on=False)
    await driver.open(path)
    await driver.type_over("x")
    with pytest.raises(EditorError, match=rf"{path.name}: it has unsaved changes"):
        await driver.editor.close_file(str(path))
