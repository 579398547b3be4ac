"""The agent's side of the Claude protocol against servers with the habits of real extensions, over real sockets."""

import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.ide.claude.peer import ClaudePeer
from isthmus.ide.clients.client_base import Deadlines
from isthmus.ide.clients.ide_client import IdeClient, IdeError, NotOfferedError, UndecidedError
from isthmus.ide.context import ContextFile, Cursor
from isthmus.ide.editor import (
    Capability,
    ExecutionImage,
    ExecutionText,
    FileMentioned,
    Position,
    Range,
)
from isthmus.ide.reviews.review import Accepted, Closed, Rejected
from support.claude_ide import HEADER, ClaudeServer, claude_server, diagnostic
from support.claude_servers import SERVERS, WITH_CONTENTS, EmacsServer, MonetServer, NeovimServer, SublimeServer
from support.editing import make_file
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PATIENT = Deadlines(
    connect=30, first_context=30, close_diff=30, call=30, retry_first=0.01, retry_last=0.05, lost=60, written=0.1
)


@pytest.fixture(params=SERVERS, ids=lambda kind: kind.server_name)
async def server(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[ClaudeServer]:
    async with claude_server(request.param, workspace) as running:
        yield running


@pytest.fixture(params=WITH_CONTENTS, ids=lambda kind: kind.server_name)
async def complete(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[ClaudeServer]:
    async with claude_server(request.param, workspace) as running:
        yield running


async def connected(workspace: Path, deadlines: Deadlines = PATIENT, **variables: str) -> ClaudePeer:
    peer = ClaudePeer(workspace, os.environ | variables, deadlines=deadlines)
    await peer.connect()
    return peer


def active(peer: IdeClient) -> ContextFile | None:
    context = peer.context()
    return context.active_file if context is not None else None


def open_paths(peer: IdeClient) -> list[str]:
    context = peer.context()
    state = context.workspace_state if context is not None else None
    return [file.path for file in (state.open_files or ())] if state is not None else []


@pytest.mark.requirement("CLD-011", "CLD-012", "CLD-015", "CLD-083")
async def test_each_dialect_is_connected_to_with_the_token_that_it_has(server: ClaudeServer, workspace: Path) -> None:
    peer = await connected(workspace)
    assert (peer.connected, peer.can_review, peer.ide_name) == (True, True, server.ide_name)
    assert peer.pid == os.getpid()
    (headers,) = ({name.lower(): value for name, value in each.items()} for each in server.headers)
    assert headers.get(HEADER) == server.token
    assert "sec-websocket-extensions" not in headers
    assert headers["sec-websocket-protocol"] == "mcp"
    await eventually_async(lambda: "ide_connected" in server.notified)
    assert server.notified[:2] == ["notifications/initialized", "ide_connected"]
    assert "prompts/list" not in server.notified
    await peer.aclose()


@pytest.mark.requirement("CLD-017", "CLD-018", "CLD-019", "CLD-021")
async def test_what_is_selected_arrives_with_lines_from_one_in_each_dialect(
    server: ClaudeServer, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    server.open = [path]
    peer = await connected(workspace)
    await server.select(path, "two\n", (1, 0), (2, 0))
    await eventually_async(lambda: active(peer) is not None)
    told = active(peer)
    assert told is not None
    assert (told.path, told.cursor, told.selected_text) == (path, Cursor(3, 1), "two\n")
    await server.select(path, "", (0, 1), (0, 1))
    await eventually_async(lambda: (told := active(peer)) is not None and told.cursor == Cursor(1, 2))
    assert active(peer) == replace(told, cursor=Cursor(1, 2), selected_text=None, timestamp=active_time(peer))
    await peer.aclose()


def active_time(peer: IdeClient) -> float:
    file = active(peer)
    assert file is not None
    return file.timestamp


@pytest.mark.requirement("CLD-052", "CLD-053")
async def test_files_that_do_not_exist_and_diff_buffers_are_not_what_the_user_looks_at(workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    async with claude_server(NeovimServer, workspace) as server:
        server.open, server.active = [path, str(workspace / "gone.py")], path
        peer = await connected(workspace)
        reviewing = asyncio.create_task(peer.open_diff(path, "one\n"))
        await server.view()
        await server.tell("selection_changed", server.selection(str(workspace / "gone.py"), "x", (0, 0), (0, 1)))
        other = make_file(workspace, "b.py")
        server.open.append(other)
        await server.select(other)
        await eventually_async(lambda: open_paths(peer) == [other, path])
        await server.accept()
        await asyncio.wait_for(reviewing, 30)
        await peer.aclose()


@pytest.mark.requirement("CLD-040", "CLD-045", "CLD-074")
async def test_an_accepted_review_brings_what_the_user_made_of_it(complete: ClaudeServer, workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    peer = await connected(workspace)
    reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
    view = await complete.view()
    assert (view.path, view.contents) == (path, "proposed\n")
    assert await peer.workspace_folders() == (str(workspace),)  # other calls are answered meanwhile
    await complete.accept("changed there\n")
    assert await asyncio.wait_for(reviewing, 30) == Accepted("changed there\n")
    (shown,) = complete.called("openDiff")
    assert shown["old_file_path"] == path
    await eventually_async(lambda: complete.called("close_tab") == [{"tab_name": shown["tab_name"]}])
    await peer.aclose()


async def test_the_end_does_not_wait_for_an_accepted_edit_that_nobody_writes(
    complete: ClaudeServer, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    peer = await connected(workspace, replace(PATIENT, written=600.0))
    reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
    await complete.view()
    await complete.accept("changed there\n")
    await asyncio.wait_for(reviewing, 30)
    await asyncio.wait_for(peer.aclose(), 30)
    assert len(complete.called("close_tab")) == 1


async def test_line_ends_and_a_missing_final_newline_of_the_proposal_are_kept(workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    async with claude_server(NeovimServer, workspace) as server:
        peer = await connected(workspace)
        for proposed, made, expected in (
            ("one\r\ntwo", None, "one\r\ntwo"),
            ("one\r\ntwo\r\n", "one\nthree\n", "one\r\nthree\r\n"),
            ("\ufeffone\n", "two\n", "\ufefftwo\n"),
        ):
            reviewing = asyncio.create_task(peer.open_diff(path, proposed))
            await server.accept(made)
            assert await asyncio.wait_for(reviewing, 30) == Accepted(expected)
            await eventually_async(lambda: not server.views)
        await peer.aclose()


@pytest.mark.requirement("CLD-046")
async def test_a_rejection_is_one_in_each_dialect(server: ClaudeServer, workspace: Path) -> None:
    peer = await connected(workspace)
    reviewing = asyncio.create_task(peer.open_diff(str(workspace / "new.py"), "proposed\n"))
    await server.reject()
    assert await asyncio.wait_for(reviewing, 30) == Rejected()
    await peer.aclose()


async def test_a_closed_tab_is_a_rejection_and_a_save_without_contents_is_no_decision(workspace: Path) -> None:
    async with claude_server(ClaudeServer, workspace) as server:
        peer = await connected(workspace)
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
        (await server.view()).answer.set_result(["TAB_CLOSED"])
        assert await asyncio.wait_for(reviewing, 30) == Rejected()
        for answer in ("FILE_SAVED", "SOMETHING_ELSE"):
            undecided = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
            (await server.view()).answer.set_result([answer])
            with pytest.raises(UndecidedError, match=answer):
                await asyncio.wait_for(undecided, 30)
        await peer.aclose()


@pytest.mark.requirement("CLD-064", "CLD-065")
async def test_a_review_that_is_answered_elsewhere_is_closed_in_each_dialect(
    server: ClaudeServer, workspace: Path
) -> None:
    peer = await connected(workspace)
    reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
    await server.view()
    reviewing.cancel()
    await asyncio.wait({reviewing})
    assert reviewing.cancelled()
    await eventually_async(lambda: not server.views)
    again = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "again\n"))
    await server.view()
    assert await peer.close_diff(str(workspace / "a.py")) is None
    assert await asyncio.wait_for(again, 30) == Closed("again\n")
    await peer.aclose()


async def test_a_diff_that_cannot_be_shown_says_why(workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    async with claude_server(NeovimServer, workspace) as server:
        server.dirty = {path}
        peer = await connected(workspace)
        with pytest.raises(IdeError, match=r"Neovim cannot show the diff: .*unsaved changes"):
            await peer.open_diff(path, "proposed\n")
        await peer.aclose()


@pytest.mark.requirement("CLD-024", "CLD-025", "CLD-026", "CLD-027")
async def test_mentions_arrive_from_each_dialect_with_absolute_paths(server: ClaudeServer, workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    peer = await connected(workspace)
    mentioned: list[FileMentioned] = []
    unsubscribe = peer.on_mention(mentioned.append)
    await server.mention(path, 0, 1)
    await server.mention(path)
    await server.mention(str(workspace / "gone.py"))
    await server.tell("at_mentioned", {"filePath": path, "lineStart": None, "lineEnd": None})
    await eventually_async(lambda: len(mentioned) == 3)
    assert mentioned == [FileMentioned(path, 0, 1), FileMentioned(path), FileMentioned(path)]
    unsubscribe()
    await peer.aclose()


@pytest.mark.requirement("CLD-055", "CLD-056", "CLD-057")
async def test_diagnostics_come_with_positions_from_zero_in_each_dialect(server: ClaudeServer, workspace: Path) -> None:
    path, other = make_file(workspace, "a.py"), make_file(workspace, "b.py")
    server.open = [path, other]
    server.diagnostics = {path: [diagnostic(1, "undefined name", 4)], other: [diagnostic(0, "unused")]}
    peer = await connected(workspace)
    (found,) = await peer.diagnostics(path)
    assert (found.path, found.range.start, found.message) == (path, Position(1, 4), "undefined name")
    assert [each.message for each in await peer.diagnostics()] == ["undefined name", "unused"]
    server.open = []
    if isinstance(server, NeovimServer):
        assert await peer.diagnostics(path) == ()
    await peer.aclose()


@pytest.mark.requirement("CLD-032", "CLD-058", "CLD-061", "CLD-062")
@pytest.mark.parametrize("kind", [ClaudeServer, SublimeServer, NeovimServer, MonetServer])
async def test_files_are_opened_saved_and_closed_in_each_dialect(kind: type[ClaudeServer], workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    async with claude_server(kind, workspace) as server:
        peer = await connected(workspace)
        assert {Capability.OPEN, Capability.SAVE, Capability.DIRTY, Capability.CLOSE} <= peer.offers
        assert await peer.is_dirty(path) is (None if kind is not MonetServer else False)
        await peer.open_file(path, Range(Position(1, 0), Position(1, 3)))
        server.dirty = {path}
        assert await peer.is_dirty(path) is True
        (file,) = await peer.open_files()
        assert file.path == path
        if kind is not MonetServer:
            assert (file.is_dirty, file.language_id) == (True, "python")
        await peer.save(path)
        assert await peer.is_dirty(path) is False
        with pytest.raises(IdeError, match=r"could not show .*gone\.py|File not found"):
            await peer.open_file(str(workspace / "gone.py"))
        if kind is not MonetServer:
            await peer.close_file(path)
            assert await peer.open_files() == ()
        await peer.aclose()


async def test_what_a_server_lacks_is_said_and_not_tried(workspace: Path) -> None:
    async with claude_server(EmacsServer, workspace) as server:
        peer = await connected(workspace)
        assert peer.offers == {Capability.OPEN, Capability.DIFF, Capability.DIAGNOSTICS, Capability.SELECTION}
        with pytest.raises(NotOfferedError, match="not available in Emacs"):
            await peer.save(str(workspace / "a.py"))
        with pytest.raises(NotOfferedError):
            await peer.execute_code("(kill-emacs)")  # its executeCode runs Lisp
        assert server.called("executeCode") == []
        assert await peer.workspace_folders() == (str(workspace),)
        path = make_file(workspace, "a.py")
        await peer.open_file(path)
        assert server.called("openFile") == [{"path": path}]
        await peer.aclose()


@pytest.mark.requirement("CLD-068", "CLD-069")
async def test_code_runs_there_and_brings_text_and_images(workspace: Path) -> None:
    async with claude_server(ClaudeServer, workspace):
        peer = await connected(workspace)
        done = await peer.execute_code("1 + 1")
        assert done.outputs == (ExecutionText("ran 1 + 1"), ExecutionImage(b"image", "image/png"))
        await peer.aclose()


@pytest.mark.requirement("CLD-018")
async def test_a_long_selection_is_cut_as_in_the_companion_protocol(workspace: Path) -> None:
    path = make_file(workspace, "a.py", "x" * 40_000)
    async with claude_server(SublimeServer, workspace) as server:
        server.open = [path, *(make_file(workspace, f"{number}.py") for number in range(20))]
        peer = await connected(workspace)
        await server.select(path, "x" * 40_000, (0, 0), (0, 40_000))
        await eventually_async(lambda: (told := active(peer)) is not None and bool(told.selected_text))
        told = active(peer)
        assert told is not None
        assert len(told.selected_text or "") == 16384
        assert (told.selected_text or "").endswith("... [TRUNCATED]")
        assert len(open_paths(peer)) == 10
        (first, *_) = await peer.open_files()
        assert first.selection is not None
        assert len(first.selection.text) == 40_000, "limits are for the wire that it goes to"
        await peer.aclose()


async def test_a_server_that_dies_and_is_back_with_another_port_and_token_goes_on(workspace: Path) -> None:
    class Restarted(SublimeServer):
        token = "another-token-of-the-second-life"

    path = make_file(workspace, "a.py")
    async with claude_server(SublimeServer, workspace) as first:
        lock = first.lock()
        peer = await connected(workspace)
        states: list[bool] = []
        peer.on_change(lambda: states.append(peer.connected))
        reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
        await first.view()
    lock.unlink()
    await eventually_async(lambda: not peer.connected)
    assert peer.context() is None
    async with claude_server(Restarted, workspace) as second:
        second.open, second.active = [path], path
        view = await second.view()
        assert view.contents == "proposed\n"
        await second.accept("in its second life\n")
        assert await asyncio.wait_for(reviewing, 30) == Accepted("in its second life\n")
        await eventually_async(lambda: open_paths(peer) == [path])
        assert False in states
        await peer.aclose()


async def test_an_ide_that_is_gone_for_long_fails_what_waits(workspace: Path) -> None:
    async with claude_server(SublimeServer, workspace) as server:
        lock = server.lock()
        peer = await connected(workspace, replace(PATIENT, lost=0.05))
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
        await server.view()
    lock.unlink()
    with pytest.raises(IdeError, match=r"lost|no IDE found"):
        await asyncio.wait_for(reviewing, 30)
    await peer.aclose()


async def test_a_call_that_is_not_answered_costs_its_deadline_and_no_more(workspace: Path) -> None:
    async with claude_server(ClaudeServer, workspace) as server:
        server.hangs = {"getDiagnostics"}
        peer = await connected(workspace, replace(PATIENT, call=0.1))
        with pytest.raises(IdeError, match="no answer to getDiagnostics"):
            await peer.diagnostics()
        assert peer.connected
        await peer.aclose()


async def test_closing_the_peer_closes_its_views_and_fails_what_waits(server: ClaudeServer, workspace: Path) -> None:
    peer = await connected(workspace)
    reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), "proposed\n"))
    await server.view()
    await peer.aclose()
    with pytest.raises(IdeError, match="closed"):
        await asyncio.wait_for(reviewing, 30)
    await eventually_async(lambda: not server.views)


@pytest.mark.requirement("CLD-009", "CLD-014")
async def test_the_port_of_the_environment_wins_and_a_refused_token_is_said(workspace: Path, tmp_path: Path) -> None:
    async with claude_server(SublimeServer, workspace), claude_server(NeovimServer, tmp_path) as named:
        peer = await connected(workspace, CLAUDE_CODE_SSE_PORT=str(named.port))
        assert peer.ide_name == "Neovim"
        await peer.aclose()
        named.lock(authToken="of-another-window")
        other = ClaudePeer(tmp_path, os.environ, deadlines=PATIENT)
        with pytest.raises(IdeError, match="refused with 400"):
            await other.connect()
        await other.aclose()
        assert "of-another-window" not in str(other.problem)


async def test_a_proxy_of_the_environment_is_not_asked(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with claude_server(ClaudeServer, workspace):
        peer = await connected(workspace)
        assert peer.connected
        await peer.aclose()


async def test_a_large_review_goes_out_as_one_frame(workspace: Path) -> None:
    async with claude_server(NeovimServer, workspace) as server:
        peer = await connected(workspace)
        proposed = "é" * 100 + "\n"
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "a.py"), proposed * 20_000))
        await server.accept()
        assert await asyncio.wait_for(reviewing, 60) == Accepted(proposed * 20_000)
        await peer.aclose()
