"""Failures of editors behind a pipe: hangs, floods, malformed messages, crashes. The plugin is a process of its own."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.editors.plugin import editor as stdio
from isthmus.editors.plugin.connection import PipeLimits, open_connection
from isthmus.editors.plugin.limits import PluginLimits
from isthmus.ide.editor import (
    ContextChanged,
    DiffAccepted,
    DiffRejected,
    EditorError,
    EditorGoneError,
    WorkspaceChanged,
)
from isthmus.rpc.lsp import frame
from isthmus.rpc.messages import notification
from support.editor_deadlines import PATIENT_PLUGIN
from support.stdio_editor import RunningPlugin, StdioDriver, equals, made, review_of, stdio_driver, told
from support.waiting import eventually_async

MALFORMED = "Content-Length: 2\r\n\r\n{}"

pytestmark = pytest.mark.anyio


@pytest.fixture
def limits() -> PluginLimits:
    return PATIENT_PLUGIN


@pytest.fixture
async def driver(workspace: Path, limits: PluginLimits) -> AsyncGenerator[StdioDriver]:
    async with stdio_driver(workspace, limits) as driver:
        yield driver


IMPATIENT = replace(
    PATIENT_PLUGIN, snapshot_seconds=0.05, command_seconds=0.05, close_seconds=0.05, confirm_seconds=0.05
)
"""Deadlines that a test need not wait for."""
impatient = pytest.mark.parametrize("limits", [IMPATIENT], ids=["impatient"])


@impatient
async def test_while_a_plugin_hangs_its_last_files_stand_in_and_the_late_answer_counts(
    driver: StdioDriver, workspace: Path
) -> None:
    path = made(workspace)
    await driver.open(path)
    await eventually_async(driver.editor.open_files, what="the file is known")
    with driver.plugin.stopped():
        other = made(workspace, "b.py")
        for _ in range(5):
            assert [file.path for file in await driver.editor.open_files()] == [str(path)]
        with pytest.raises(EditorError, match="does not answer"):
            await driver.editor.text(str(path))
        with pytest.raises(EditorError, match="does not answer"):
            await driver.editor.open_diff(review_of(path))
        with pytest.raises(EditorError, match="does not answer"):  # which is no answer of the user
            await driver.editor.confirm("May I?", "make")
    asked = len(await driver.plugin.heard("editor/openFiles"))
    async with told(driver.editor) as events:
        await driver.open(other)

        async def both() -> bool:
            return len(await driver.editor.open_files()) == 2

        await eventually_async(both, what="both files are known")
        await eventually_async(lambda: ContextChanged() in events, what="the change is told")
    assert asked <= 7
    # The view that may have appeared after all was closed again.
    assert await eventually_async(lambda: driver.plugin.heard("editor/closeDiff"), what="closed")
    assert await driver.plugin.do("views") == {}


async def test_a_plugin_that_reads_nothing_blocks_nobody_and_costs_a_bounded_memory(workspace: Path) -> None:
    path = made(workspace)
    async with stdio_driver(workspace, replace(IMPATIENT, command_seconds=0.2, unread_bytes=1_000_000)) as driver:
        with driver.plugin.stopped():
            for _ in range(10):
                with pytest.raises(EditorError, match="does not answer"):
                    await driver.editor.open_diff(review_of(path, "x" * 400_000))
                await driver.editor.show_message("x" * 400_000)
        review = review_of(path, "small\n")

        async def can_be_shown() -> bool:
            with contextlib.suppress(EditorError):
                await driver.editor.open_diff(review)
                return True
            return False

        await eventually_async(can_be_shown, what="it reads again, and all is well")


async def test_a_plugin_that_floods_with_notifications_is_heard_and_keeps_nobody_waiting(
    driver: StdioDriver, workspace: Path
) -> None:
    body = '{"jsonrpc":"2.0","method":"editor/didMention","params":{"uri":"file:///%06d"}}'
    flood = "".join(f"Content-Length: {len(body % number)}\r\n\r\n{body % number}" for number in range(5000))
    await driver.plugin.do("write", text=flood, times=4)
    review = review_of(made(workspace))
    await driver.editor.open_diff(review)
    await driver.accept(review)
    await driver.quit()
    events = [event async for event in driver.editor.changes()]
    assert DiffAccepted("r1", "new\n") in events
    assert len(events) <= 1010


@pytest.mark.parametrize(
    "junk", ["GET / HTTP/1.1\r\n\r\n", 'Content-Length: 9\r\n\r\n{"a":1,,}', "x" * 9000 + "\r\n\r\n"]
)
async def test_nonsense_is_answered_and_what_follows_is_heard(driver: StdioDriver, workspace: Path, junk: str) -> None:
    async with told(driver.editor) as events:
        await driver.plugin.do("write", text=junk)
        await driver.open(made(workspace))
        await eventually_async(lambda: ContextChanged() in events, what="the change is told")

    async def refused() -> bool:
        return any(message.get("error") and message["id"] is None for message in await driver.plugin.do("heard"))

    await eventually_async(refused, what="an error")


async def test_a_plugin_that_talks_nothing_but_nonsense_is_gone(driver: StdioDriver) -> None:
    await driver.plugin.do("write", text=MALFORMED, times=200)
    assert [event async for event in driver.editor.changes()] == []
    with pytest.raises(EditorGoneError):
        await driver.editor.open_files()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("editor/didMention", {"uri": 7}),
        ("editor/didMention", {"uri": "http://x"}),
        ("editor/didAcceptDiff", {}),
        ("editor/didAcceptDiff", {"id": "r1", "text": 7}),
        ("editor/didAcceptDiff", {"id": "somebody's"}),
        ("textDocument/publishDiagnostics", {"uri": "file:///a", "diagnostics": 1}),
        ("editor/invented", {}),
        ("$/progress", {}),
    ],
)
async def test_what_is_told_wrongly_decides_nothing(
    driver: StdioDriver, workspace: Path, method: str, params: dict[str, object]
) -> None:
    review = review_of(made(workspace))
    await driver.editor.open_diff(review)
    await driver.plugin.do("tell", method=method, params=params)
    await driver.reject(review)
    await driver.quit()
    assert [event async for event in driver.editor.changes()] == [DiffRejected("r1")]


async def test_requests_of_the_plugin_are_answered(driver: StdioDriver) -> None:
    for number, method in enumerate(["initialize", "invented", "$/x"]):
        await driver.plugin.do("ask", method=method, id=f"q{number}", params={})

    async def answers() -> dict[str, int]:
        heard = await driver.plugin.do("heard")
        return {message["id"]: message["error"]["code"] for message in heard if "error" in message}

    expected = {"q0": -32600, "q1": -32601, "q2": -32601}
    await eventually_async(lambda: equals(answers(), expected), what="all are refused")


async def test_an_answer_that_is_nonsense_is_an_error_that_names_it(workspace: Path) -> None:
    async with stdio_driver(workspace, capabilities={"execute": True}) as driver:
        await driver.plugin.do("answer", name="execution", value={"outputs": "none"})
        with pytest.raises(EditorError, match=r"sent an invalid answer: editor/executeCode\.outputs"):
            await driver.editor.execute_code("1")


async def test_a_crash_of_the_editor_ends_everything_at_once(driver: StdioDriver, workspace: Path) -> None:
    await driver.plugin.do("be_silent", method="editor/text", on=True)
    asking = asyncio.create_task(driver.editor.text(str(made(workspace))))
    await driver.plugin.hears("editor/text")
    with pytest.raises(EOFError):
        await driver.plugin.do("crash")
    with pytest.raises(EditorGoneError):
        await asking
    assert [event async for event in driver.editor.changes()] == []
    with pytest.raises(EditorGoneError):
        await driver.editor.workspace_folders()


@pytest.mark.parametrize("stays_open", [False, True], ids=["both pipes closed", "one pipe held by a child"])
async def test_what_an_editor_said_last_is_heard_though_it_reads_no_more(
    stays_open: bool,
) -> None:
    (theirs_in, outgoing), (incoming, theirs_out) = os.pipe(), os.pipe()
    heard: list[str] = []
    ended = asyncio.Event()
    connection = await open_connection(
        incoming,
        outgoing,
        lambda _method, _params: None,
        lambda method, _: heard.append(method),
        lambda _: ended.set(),
        PipeLimits(chunk_bytes=100),
    )
    os.write(theirs_out, b"".join(frame(notification(f"told/{number}", {})) for number in range(100)))
    os.close(theirs_in)
    if not stays_open:
        os.close(theirs_out)
    await asyncio.wait_for(ended.wait(), 30)
    assert heard == [f"told/{number}" for number in range(100)]
    await connection.aclose()
    if stays_open:
        os.close(theirs_out)


async def test_after_shutdown_nothing_is_asked(driver: StdioDriver, workspace: Path) -> None:
    await driver.editor.open_diff(review_of(made(workspace)))
    await driver.quit()
    assert [event async for event in driver.editor.changes()] == []
    await driver.editor.aclose()
    assert await driver.plugin.heard("editor/closeDiff") == []


async def test_letting_go_closes_the_views_and_then_the_pipe(driver: StdioDriver, workspace: Path) -> None:
    await driver.editor.open_diff(review_of(made(workspace)))
    await driver.editor.aclose()
    await driver.plugin.is_left()
    assert await driver.plugin.do("views") == {}


@pytest.mark.parametrize("initialize", [{"protocolVersion": 99}, {"editorInfo": {"name": "NO"}}])
async def test_a_plugin_that_initializes_wrongly_is_told_and_not_waited_for(
    workspace: Path, initialize: dict[str, object]
) -> None:
    plugin = RunningPlugin(workspace, **initialize)
    try:
        attaching = asyncio.create_task(stdio.attach(plugin.incoming, plugin.outgoing, PATIENT_PLUGIN))

        async def refused() -> bool:
            return any("error" in message for message in await plugin.do("heard"))

        await eventually_async(refused, what="an error")
        attaching.cancel()
        await asyncio.wait({attaching})
        await plugin.is_left()
    finally:
        plugin.close()


async def test_a_plugin_that_says_nothing_is_given_up() -> None:
    (theirs_in, outgoing), (incoming, theirs_out) = os.pipe(), os.pipe()
    with pytest.raises(EditorError, match="did not send initialize"):
        await stdio.attach(incoming, outgoing, PluginLimits(start_seconds=0.05))
    assert os.read(theirs_in, 1) == b""
    os.close(theirs_in)
    os.close(theirs_out)


@impatient
async def test_folders_that_a_busy_plugin_tells_late_count(driver: StdioDriver, workspace: Path) -> None:
    other = workspace / "other"
    await driver.plugin.do("answer", name="folders", value=[{"uri": other.as_uri()}])
    async with told(driver.editor) as events:
        await driver.plugin.do("tell", method="workspace/didChangeWorkspaceFolders", params={})
        await eventually_async(lambda: WorkspaceChanged() in events, what="the change is told")
        with driver.plugin.stopped():
            assert await driver.editor.workspace_folders() == (str(workspace),)
        await eventually_async(lambda: events.count(WorkspaceChanged()) == 2, what="what is known now is told")
    assert await driver.editor.workspace_folders() == (str(other),)


async def test_asking_for_files_can_be_cancelled_in_the_moment_the_editor_is_gone(
    driver: StdioDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_gone(_: stdio.StdioEditor) -> None:
        asking.cancel()
        raise EditorGoneError("the editor is gone")

    monkeypatch.setattr(stdio.StdioEditor, "_take_snapshot", is_gone)
    asking = asyncio.create_task(driver.editor.open_files())
    with pytest.raises(asyncio.CancelledError):  # a companion waited forever for a task that took it for an answer
        await asking
