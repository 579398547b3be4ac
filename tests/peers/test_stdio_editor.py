"""What only an editor behind a pipe can do: hang, flood, talk nonsense, crash. The plugin is a process of its own."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.editors import json_rpc_connection, stdio
from isthmus.ide.editor import (
    Capability,
    ContextChanged,
    Diagnostic,
    DiffAccepted,
    DiffEdited,
    DiffRejected,
    EditorError,
    EditorEvent,
    EditorGoneError,
    Execution,
    ExecutionText,
    FileMentioned,
    NotAvailableError,
    Position,
    Range,
    Severity,
    WorkspaceChanged,
)
from isthmus.ide.review import DiffReview
from support.stdio_editor import RunningPlugin, StdioPerson, stdio_person
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

MALFORMED = "Content-Length: 2\r\n\r\n{}"


@pytest.fixture
async def person(workspace: Path) -> AsyncGenerator[StdioPerson]:
    async with stdio_person(workspace) as person:
        yield person


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test need not wait for."""
    for name in ("SNAPSHOT_SECONDS", "COMMAND_SECONDS", "CLOSE_SECONDS", "CONFIRM_SECONDS"):
        monkeypatch.setattr(stdio, name, 0.05)


@contextlib.asynccontextmanager
async def told(person: StdioPerson) -> AsyncGenerator[list[EditorEvent]]:
    """What the editor tells meanwhile."""
    events: list[EditorEvent] = []

    async def listen() -> None:
        async for event in person.editor.changes():
            events.append(event)

    task = asyncio.create_task(listen())
    yield events
    task.cancel()
    await asyncio.wait({task})


def review_of(path: Path, proposed: str = "new\n") -> DiffReview:
    return DiffReview("r1", str(path), proposed, "owner", "An agent")


def made(workspace: Path, name: str = "a.py", content: bytes = b"one\n") -> Path:
    path = workspace / name
    path.write_bytes(content)
    return path


async def test_the_plugin_says_who_the_editor_is(person: StdioPerson) -> None:
    identity = person.editor.identity
    assert (identity.name, identity.display_name) == ("test-editor", "Test Editor")
    assert identity.pid == person.plugin.process.pid
    assert set(person.editor.unavailable) == {Capability.EXECUTE, Capability.TERMINAL}


async def test_a_process_that_is_not_there_is_not_the_editor(workspace: Path) -> None:
    info = {"name": "ed", "displayName": "Ed", "processId": 2**22 + 1}
    async with stdio_person(workspace, editorInfo=info) as person:
        assert person.editor.identity.pid == os.getppid()


async def test_what_a_plugin_lacks_is_said_in_its_words(person: StdioPerson) -> None:
    with pytest.raises(NotAvailableError, match="not available in Test Editor: it has no notebooks"):
        await person.editor.execute_code("1")


async def test_a_plugin_without_folders_works_where_the_companion_was_started(workspace: Path) -> None:
    async with stdio_person(workspace, workspaceFolders=[]) as person:
        assert await person.editor.workspace_folders() == (str(Path.cwd()),)


async def test_folders_trust_and_mentions_are_told(person: StdioPerson, workspace: Path) -> None:
    async with told(person) as events:
        await person.plugin.do("tell", method="workspace/didChangeWorkspaceFolders", params={})
        await person.plugin.do("tell", method="editor/didChangeTrust", params={"isTrusted": False})
        at = {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}}
        params = {"uri": (workspace / "ü b.py").as_uri(), "range": at}
        await person.plugin.do("tell", method="editor/didMention", params=params)
        mention = FileMentioned(str(workspace / "ü b.py"), 1, 2)
        await eventually_async(lambda: mention in events, what="the mention is told")
        assert WorkspaceChanged() in events
    assert person.editor.is_trusted is False
    assert await person.editor.workspace_folders() == (str(workspace),)
    assert await person.plugin.heard("workspace/workspaceFolders")


async def test_what_is_typed_into_a_view_is_told(person: StdioPerson, workspace: Path) -> None:
    review = review_of(made(workspace))
    async with told(person) as events:
        await person.editor.open_diff(review)
        await person.edit_review(review, "mine\n")
        await eventually_async(lambda: DiffEdited("r1", "mine\n") in events, what="the text is told")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_a_place_is_the_same_in_every_encoding(workspace: Path, encoding: str) -> None:
    path = made(workspace, content="é😀x = 1\n".encode())
    async with stdio_person(workspace, positionEncodings=[encoding]) as person:
        await person.editor.open_file(str(path), Range(Position(0, 3), Position(0, 3)))
        (shown,) = await person.plugin.heard("window/showDocument")
        sent = {"utf-8": 6, "utf-16": 3, "utf-32": 2}[encoding]
        assert shown["params"]["selection"]["start"] == {"line": 0, "character": sent}


async def test_places_in_unsaved_text_are_converted_by_that_text(person: StdioPerson, workspace: Path) -> None:
    await person.open(made(workspace))
    await person.type_over("😀😀\n")
    await person.plugin.do("select", start=2, end=2)
    (file,) = await person.editor.open_files()
    assert file.cursor == Position(0, 4)


async def test_diagnostics_are_asked_for(person: StdioPerson, workspace: Path) -> None:
    path = made(workspace, content="😀x\n".encode())
    at = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 2}}
    await person.plugin.do("set_diagnostics", uri=path.as_uri(), found=[{"range": at, "message": "m", "severity": 2}])
    found = Diagnostic(str(path), Range(Position(0, 2), Position(0, 3)), Severity.WARNING, "m")
    assert await person.editor.diagnostics() == await person.editor.diagnostics(str(path)) == (found,)


async def test_diagnostics_that_are_pushed_are_not_asked_for(workspace: Path) -> None:
    path, other = made(workspace), made(workspace, "b.py")
    at = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    async with stdio_person(workspace, capabilities={"diagnostics": {"push": True}}) as person:
        for file in (path, other):
            params = {"uri": file.as_uri(), "diagnostics": [{"range": at, "message": file.name}]}
            await person.plugin.do("tell", method="textDocument/publishDiagnostics", params=params)

        async def messages(path: str | None) -> list[str]:
            return [found.message for found in await person.editor.diagnostics(path)]

        await eventually_async(lambda: _equals(messages(None), ["a.py", "b.py"]), what="both files are known")
        assert await messages(str(other)) == ["b.py"]
        cleared: dict[str, object] = {"uri": path.as_uri(), "diagnostics": []}
        await person.plugin.do("tell", method="textDocument/publishDiagnostics", params=cleared)
        await eventually_async(lambda: _equals(messages(None), ["b.py"]), what="the first is clean")
        assert not await person.plugin.heard("workspace/diagnostic")


async def _equals(value: "asyncio.Future[object] | object", expected: object) -> bool:
    return (await value if asyncio.iscoroutine(value) else value) == expected


async def test_an_editor_that_knows_only_lf_changes_no_other_line(workspace: Path) -> None:
    path = made(workspace, content=b"\xef\xbb\xbfone\r\ntwo\r\n")
    async with stdio_person(workspace, newlines="lf") as person, told(person) as events:
        await person.open(path)
        await person.type_over("one\n2\n")
        assert await person.editor.text(str(path)) == "one\r\n2\r\n"
        review = review_of(path, "\ufeffone\r\nTWO\r\n")
        await person.editor.open_diff(review)
        await person.edit_review(review, "one\nTHREE\n")
        await person.accept(review)
        accepted = DiffAccepted("r1", "\ufeffone\r\nTHREE\r\n")
        await eventually_async(lambda: accepted in events, what="accepted in the form of the file")


async def test_a_question_is_a_no_unless_it_is_a_yes(person: StdioPerson) -> None:
    for answer, expected in (({"title": "Yes"}, True), ({"title": "No"}, False), (None, False), ("Yes", False)):
        await person.plugin.do("answer", name="question", value=answer)
        assert await person.editor.confirm("May it?", "x" * 10) is expected
    question = (await person.plugin.heard("window/showMessageRequest"))[0]["params"]
    assert question["message"] == "May it?\n\nxxxxxxxxxx"
    assert question["actions"] == [{"title": "Yes"}, {"title": "No"}]


async def test_a_question_that_nobody_needs_any_more_is_closed(person: StdioPerson) -> None:
    await person.plugin.do("be_silent", method="window/showMessageRequest", on=True)
    asking = asyncio.create_task(person.editor.confirm("May it?", ""))
    (question,) = await _heard(person, "window/showMessageRequest")
    asking.cancel()
    await asyncio.wait({asking})
    (cancelled,) = await _heard(person, "$/cancelRequest")
    assert cancelled["params"] == {"id": question["id"]}


async def _heard(person: StdioPerson, method: str) -> list[dict[str, object]]:
    return await eventually_async(lambda: person.plugin.heard(method), what=method)


async def test_code_runs_and_terminals_are_set(workspace: Path) -> None:
    async with stdio_person(workspace, capabilities={"execute": True, "terminal": True}) as person:
        await person.plugin.do("answer", name="execution", value={"outputs": [{"type": "text", "text": "2"}]})
        assert await person.editor.execute_code("1+1") == Execution((ExecutionText("2"),))
        await person.editor.set_terminal_environment({"A": "1", "B": None})
        (told,) = await person.plugin.heard("editor/setTerminalEnvironment")
        assert told["params"] == {"variables": {"A": "1", "B": None}}


async def test_an_error_of_the_plugin_is_told_in_its_words(person: StdioPerson, workspace: Path) -> None:
    path = made(workspace)
    await person.plugin.do("be_silent", method="editor/openFiles", on=False)
    await person.open(path)
    await person.type_over("x")
    with pytest.raises(EditorError, match=rf"{path.name}: it has unsaved changes"):
        await person.editor.close_file(str(path))


@pytest.mark.usefixtures("impatient")
async def test_while_a_plugin_hangs_its_last_files_stand_in_and_the_late_answer_counts(
    person: StdioPerson, workspace: Path
) -> None:
    path = made(workspace)
    await person.open(path)
    await eventually_async(person.editor.open_files, what="the file is known")
    with person.plugin.stopped():
        other = made(workspace, "b.py")
        for _ in range(5):
            assert [file.path for file in await person.editor.open_files()] == [str(path)]
        with pytest.raises(EditorError, match="does not answer"):
            await person.editor.text(str(path))
        with pytest.raises(EditorError, match="does not answer"):
            await person.editor.open_diff(review_of(path))
    asked = len(await person.plugin.heard("editor/openFiles"))
    async with told(person) as events:
        await person.open(other)

        async def both() -> bool:
            return len(await person.editor.open_files()) == 2

        await eventually_async(both, what="both files are known")
        await eventually_async(lambda: ContextChanged() in events, what="the change is told")
    assert asked <= 7
    # The view that may have appeared after all was closed again.
    assert await eventually_async(lambda: person.plugin.heard("editor/closeDiff"), what="closed")
    assert await person.plugin.do("views") == {}


@pytest.mark.usefixtures("impatient")
async def test_a_plugin_that_reads_nothing_blocks_nobody_and_costs_a_bounded_memory(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rpc_connection, "MAXIMUM_UNREAD_BYTES", 1_000_000)
    path = made(workspace)
    async with stdio_person(workspace) as person:
        with person.plugin.stopped():
            for _ in range(10):
                with pytest.raises(EditorError, match="does not answer"):
                    await person.editor.open_diff(review_of(path, "x" * 400_000))
                await person.editor.show_message("x" * 400_000)
        monkeypatch.setattr(stdio, "COMMAND_SECONDS", 30.0)
        review = review_of(path, "small\n")

        async def can_be_shown() -> bool:
            with contextlib.suppress(EditorError):
                await person.editor.open_diff(review)
                return True
            return False

        await eventually_async(can_be_shown, what="it reads again, and all is well")


async def test_a_plugin_that_floods_with_notifications_is_heard_and_keeps_nobody_waiting(
    person: StdioPerson, workspace: Path
) -> None:
    body = '{"jsonrpc":"2.0","method":"editor/didMention","params":{"uri":"file:///%06d"}}'
    flood = "".join(f"Content-Length: {len(body % number)}\r\n\r\n{body % number}" for number in range(5000))
    await person.plugin.do("write", text=flood, times=4)
    review = review_of(made(workspace))
    await person.editor.open_diff(review)
    await person.accept(review)
    await person.quit()
    events = [event async for event in person.editor.changes()]
    assert DiffAccepted("r1", "new\n") in events
    assert len(events) <= 1010


@pytest.mark.parametrize(
    "junk", ["GET / HTTP/1.1\r\n\r\n", 'Content-Length: 9\r\n\r\n{"a":1,,}', "x" * 9000 + "\r\n\r\n"]
)
async def test_nonsense_is_answered_and_what_follows_is_heard(person: StdioPerson, workspace: Path, junk: str) -> None:
    async with told(person) as events:
        await person.plugin.do("write", text=junk)
        await person.open(made(workspace))
        await eventually_async(lambda: ContextChanged() in events, what="the change is told")

    async def refused() -> bool:
        return any(message.get("error") and message["id"] is None for message in await person.plugin.do("heard"))

    await eventually_async(refused, what="an error")


async def test_a_plugin_that_talks_nothing_but_nonsense_is_gone(person: StdioPerson) -> None:
    await person.plugin.do("write", text=MALFORMED, times=200)
    assert [event async for event in person.editor.changes()] == []
    with pytest.raises(EditorGoneError):
        await person.editor.open_files()


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
    person: StdioPerson, workspace: Path, method: str, params: dict[str, object]
) -> None:
    review = review_of(made(workspace))
    await person.editor.open_diff(review)
    await person.plugin.do("tell", method=method, params=params)
    await person.reject(review)
    await person.quit()
    assert [event async for event in person.editor.changes()] == [DiffRejected("r1")]


async def test_requests_of_the_plugin_are_answered(person: StdioPerson) -> None:
    for number, method in enumerate(["initialize", "invented", "$/x"]):
        await person.plugin.do("ask", method=method, id=f"q{number}", params={})

    async def answers() -> dict[str, int]:
        heard = await person.plugin.do("heard")
        return {message["id"]: message["error"]["code"] for message in heard if "error" in message}

    expected = {"q0": -32600, "q1": -32601, "q2": -32601}
    await eventually_async(lambda: _equals(answers(), expected), what="all are refused")


async def test_an_answer_that_is_nonsense_is_an_error_that_names_it(workspace: Path) -> None:
    async with stdio_person(workspace, capabilities={"execute": True}) as person:
        await person.plugin.do("answer", name="execution", value={"outputs": "none"})
        with pytest.raises(EditorError, match=r"answered wrongly: editor/executeCode\.outputs"):
            await person.editor.execute_code("1")


async def test_a_crash_of_the_editor_ends_everything_at_once(person: StdioPerson, workspace: Path) -> None:
    await person.plugin.do("be_silent", method="editor/text", on=True)
    asking = asyncio.create_task(person.editor.text(str(made(workspace))))
    await _heard(person, "editor/text")
    with pytest.raises(EOFError):
        await person.plugin.do("crash")
    with pytest.raises(EditorGoneError):
        await asking
    assert [event async for event in person.editor.changes()] == []
    with pytest.raises(EditorGoneError):
        await person.editor.workspace_folders()


async def test_after_shutdown_nothing_is_asked(person: StdioPerson, workspace: Path) -> None:
    await person.editor.open_diff(review_of(made(workspace)))
    await person.quit()
    assert [event async for event in person.editor.changes()] == []
    await person.editor.aclose()
    assert await person.plugin.heard("editor/closeDiff") == []


async def test_letting_go_closes_the_views_and_then_the_pipe(person: StdioPerson, workspace: Path) -> None:
    await person.editor.open_diff(review_of(made(workspace)))
    await person.editor.aclose()
    await person.plugin.is_left()
    assert await person.plugin.do("views") == {}


@pytest.mark.parametrize("initialize", [{"protocolVersion": 99}, {"editorInfo": {"name": "NO"}}])
async def test_a_plugin_that_initializes_wrongly_is_told_and_not_waited_for(
    workspace: Path, initialize: dict[str, object]
) -> None:
    plugin = RunningPlugin(workspace, **initialize)
    try:
        attaching = asyncio.create_task(stdio.attach(plugin.incoming, plugin.outgoing, timeout=60))

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
        await stdio.attach(incoming, outgoing, timeout=0.05)
    assert os.read(theirs_in, 1) == b""
    os.close(theirs_in)
    os.close(theirs_out)
