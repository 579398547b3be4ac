import asyncio
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide.clients.client_base import Deadlines
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.context import ContextFile, Cursor
from isthmus.ide.gemini.peer import GeminiPeer
from isthmus.ide.reviews.review import Accepted, Closed, Rejected
from support.vscode_companion import TOKEN, VsCodeCompanion, vscode_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

QUICK = Deadlines(connect=30, first_context=30, open_diff=30, close_diff=30, retry_first=0.01, retry_last=0.05, lost=60)


@pytest.fixture(params=["json", "events"])
async def window(request: pytest.FixtureRequest, workspace: Path) -> AsyncGenerator[VsCodeCompanion]:
    async with vscode_companion(as_json=request.param == "json") as companion:
        companion.discovery(workspace, ideInfo={"name": "vscode", "displayName": "VS Code"})
        yield companion


@pytest.fixture
async def peer(window: VsCodeCompanion, workspace: Path) -> AsyncGenerator[GeminiPeer]:
    peer = await connected(workspace, QUICK)
    yield peer
    await peer.aclose()


async def connected(workspace: Path, deadlines: Deadlines) -> GeminiPeer:
    peer = GeminiPeer(workspace, os.environ, deadlines=deadlines)
    await peer.connect()
    return peer


def file(path: str, timestamp: float, **more: Any) -> dict[str, Any]:
    return {"path": path, "timestamp": timestamp, **more}


def active(peer: GeminiPeer) -> ContextFile | None:
    context = peer.context()
    return context.active_file if context is not None else None


async def opened(window: VsCodeCompanion, count: int = 1) -> None:
    await eventually_async(lambda: len(window.opened) == count, what=f"{count} diffs were opened")


@pytest.mark.requirement("GEM-021")
async def test_every_request_carries_the_token(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "new\n"))
    await opened(window)
    await peer.close_diff("/w/a.py")
    await reviewing
    await peer.aclose()
    assert {method for method, _ in window.requests} == {"POST", "GET", "DELETE"}
    assert {token for _, token in window.requests} == {f"Bearer {TOKEN}"}


async def test_it_knows_the_ide_and_that_it_shows_diffs(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    assert (peer.connected, peer.ide_name, peer.can_review) == (True, "VS Code", True)


@pytest.mark.requirement("GEM-051", "GEM-052", "GEM-054", "GEM-055")
async def test_the_context_is_sorted_and_only_the_newest_file_is_active(
    window: VsCodeCompanion, peer: GeminiPeer
) -> None:
    changed = asyncio.Event()
    peer.on_change(changed.set)
    await window.look_at(
        file("/w/old.py", 1, isActive=True, cursor={"line": 1, "character": 1}, selectedText="old"),
        file("/w/new.py", 3, isActive=True, cursor={"line": 2, "character": 5}, selectedText="new", unknown=1),
        file("/w/middle.py", 2),
    )
    await asyncio.wait_for(changed.wait(), 30)
    context = peer.context()
    assert context is not None
    assert context.workspace_state is not None
    files = context.workspace_state.open_files
    assert files is not None
    assert [each.path for each in files] == ["/w/new.py", "/w/middle.py", "/w/old.py"]
    assert context.active_file == files[0]
    assert (files[0].cursor, files[0].selected_text) == (Cursor(2, 5), "new")
    assert [(each.is_active, each.cursor, each.selected_text) for each in files[1:]] == [(None, None, None)] * 2


@pytest.mark.requirement("GEM-058", "GEM-059")
async def test_the_context_is_cut_to_ten_files_and_16_kilobytes(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    files = [file(f"/w/{number}.py", number) for number in range(25)]
    await window.look_at(*files, file("/w/active.py", 99, isActive=True, selectedText="x" * 40_000))
    await eventually_async(lambda: active(peer) is not None)
    context, shown = peer.context(), active(peer)
    assert context is not None
    assert context.workspace_state is not None
    assert len(context.workspace_state.open_files or ()) == 10
    assert shown is not None
    assert len(shown.selected_text or "") == 16384
    assert (shown.selected_text or "").endswith("[TRUNCATED]")


async def test_the_first_context_is_there_when_connecting_returns(window: VsCodeCompanion, workspace: Path) -> None:
    window.context = {"workspaceState": {"openFiles": [file("/w/a.py", 1, isActive=True)], "isTrusted": True}}
    peer = await connected(workspace, QUICK)
    context = peer.context()
    assert context is not None
    assert context.active_file is not None
    assert context.active_file.path == "/w/a.py"
    assert context.workspace_state is not None
    assert context.workspace_state.is_trusted is True
    await peer.aclose()


@pytest.mark.parametrize(
    "bad",
    [
        {"workspaceState": {"openFiles": [{"path": "/w/no-timestamp.py"}, {"path": "/w/b.py", "timestamp": 5}]}},
        {"workspaceState": {"openFiles": "everything"}},
        {"workspaceState": 7},
        {},
    ],
)
async def test_a_bad_context_costs_its_bad_entries_and_never_the_connection(
    window: VsCodeCompanion, peer: GeminiPeer, bad: dict[str, Any]
) -> None:
    await window.send("ide/contextUpdate", bad)
    await window.send("ide/somethingNew", {"x": 1})
    await window.send("ide/diffAccepted", {"content": "whose?"})
    await window.look_at(file("/w/after.py", 6, isActive=True))

    def caught_up() -> bool:
        shown = active(peer)
        return shown is not None and shown.path == "/w/after.py"

    await eventually_async(caught_up)
    assert peer.connected


async def test_an_accepted_diff_returns_what_the_user_left_in_it(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    assert window.opened == [("/w/a.py", "proposed\n")]
    await window.accept("/w/other.py", "not ours\n")
    await window.accept("/w/a.py", "edited\r\n")
    assert await asyncio.wait_for(reviewing, 30) == Accepted("edited\r\n")
    assert window.closed == []


@pytest.mark.parametrize("method", ["ide/diffRejected", "ide/diffClosed"])
async def test_a_closed_diff_is_a_rejection(window: VsCodeCompanion, peer: GeminiPeer, method: str) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    await window.send(method, {"filePath": "/w/a.py"})
    assert await asyncio.wait_for(reviewing, 30) == Rejected()


async def test_an_emptied_file_is_accepted_as_empty(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    await window.accept("/w/a.py", "")
    assert await asyncio.wait_for(reviewing, 30) == Accepted("")


async def test_a_decision_that_comes_before_the_answer_to_open_diff_counts(
    window: VsCodeCompanion, peer: GeminiPeer
) -> None:
    window.answer_late = asyncio.Event()
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await eventually_async(lambda: sum(method == "POST" for method, _ in window.requests) == 4)
    await window.accept("/w/a.py", "early\n")
    window.answer_late.set()
    assert await asyncio.wait_for(reviewing, 30) == Accepted("early\n")


async def test_two_diffs_wait_at_the_same_time_and_one_file_has_one(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    first = asyncio.create_task(peer.open_diff("/w/a.py", "a\n"))
    second = asyncio.create_task(peer.open_diff("/w/b.py", "b\n"))
    await opened(window, 2)
    with pytest.raises(IdeError, match="already"):
        await peer.open_diff("/w/a.py", "again\n")
    await window.accept("/w/b.py", "b\n")
    await window.reject("/w/a.py")
    assert await asyncio.wait_for(second, 30) == Accepted("b\n")
    assert await asyncio.wait_for(first, 30) == Rejected()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("content", ["final\n", "", '{"json": "of the file itself"}', "12"])
async def test_closing_a_diff_returns_its_final_content_in_either_form(
    window: VsCodeCompanion, peer: GeminiPeer, plain: bool, content: str
) -> None:
    window.plain_close = plain
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    window.contents["/w/a.py"] = content
    assert await peer.close_diff("/w/a.py") == content
    assert await asyncio.wait_for(reviewing, 30) == Closed(content)
    assert window.closed == [{"filePath": "/w/a.py", "suppressNotification": True}]


async def test_cancelling_a_review_closes_its_view_silently(window: VsCodeCompanion, peer: GeminiPeer) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    reviewing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reviewing
    await eventually_async(lambda: window.closed == [{"filePath": "/w/a.py", "suppressNotification": True}])
    again = asyncio.create_task(peer.open_diff("/w/a.py", "again\n"))
    await opened(window, 2)
    await window.accept("/w/a.py", "again\n")
    assert await asyncio.wait_for(again, 30) == Accepted("again\n")


async def test_a_diff_that_cannot_be_shown_is_an_error_with_the_reason(
    window: VsCodeCompanion, peer: GeminiPeer
) -> None:
    window.failure = "the editor is full"
    with pytest.raises(IdeError, match="VS Code cannot show the diff: the editor is full"):
        await peer.open_diff("/w/a.py", "proposed\n")
    assert window.closed == []
    assert peer.connected


async def test_a_window_that_does_not_answer_costs_the_deadline(window: VsCodeCompanion, workspace: Path) -> None:
    peer = await connected(workspace, Deadlines(open_diff=0.1, close_diff=0.1))
    window.answer_late = asyncio.Event()
    with pytest.raises(IdeError, match=r"no answer to tools/call within 0\.1 s"):
        await peer.open_diff("/w/a.py", "proposed\n")
    await peer.aclose()
    window.answer_late.set()


async def test_after_a_reload_of_the_window_waiting_diffs_are_shown_again(
    window: VsCodeCompanion, peer: GeminiPeer
) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    states: list[bool] = []
    peer.on_change(lambda: states.append(peer.connected))
    await window.forget_sessions()
    await opened(window, 2)
    assert window.opened == [("/w/a.py", "proposed\n")] * 2
    await eventually_async(lambda: peer.connected)
    await window.accept("/w/a.py", "after the reload\n")
    assert await asyncio.wait_for(reviewing, 30) == Accepted("after the reload\n")
    assert False in states


async def test_a_call_with_an_ended_session_begins_a_new_one(workspace: Path) -> None:
    async with vscode_companion(stream=False) as window:
        window.discovery(workspace)
        peer = await connected(workspace, Deadlines(first_context=0.01))
        assert (peer.connected, peer.ide_name) == (True, "ide")
        await window.forget_sessions()
        assert await peer.close_diff("/w/a.py") is None
        assert window.closed == [{"filePath": "/w/a.py", "suppressNotification": True}]
        await peer.aclose()


async def test_an_ide_without_diff_tools_still_gives_its_context(workspace: Path) -> None:
    async with vscode_companion(tools=("somethingElse",)) as window:
        window.discovery(workspace)
        peer = await connected(workspace, Deadlines())
        assert (peer.connected, peer.can_review) == (True, False)
        await peer.aclose()


async def test_a_window_that_closes_for_good_fails_what_waits_and_is_noticed(workspace: Path) -> None:
    async with vscode_companion() as window:
        path = window.discovery(workspace)
        peer = await connected(workspace, replace(QUICK, lost=0.1, connect=1))
        reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
        await opened(window)
    path.unlink()
    await eventually_async(lambda: not peer.connected)
    assert peer.context() is None
    # On a loaded machine the search for another window may end before the connection counts as lost.
    with pytest.raises(IdeError, match=r"lost|no IDE companion found"):
        await asyncio.wait_for(reviewing, 30)
    with pytest.raises(IdeError):
        await asyncio.wait_for(peer.close_diff("/w/a.py"), 30)
    await peer.aclose()


async def test_another_window_takes_over_when_the_first_one_closes(workspace: Path) -> None:
    async with vscode_companion() as second:
        async with vscode_companion() as first:
            path = first.discovery(workspace)
            peer = await connected(workspace, QUICK)
            reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
            await opened(first)
        path.unlink()
        second.discovery(workspace)
        await opened(second)
        await second.accept("/w/a.py", "in the second window\n")
        assert await asyncio.wait_for(reviewing, 30) == Accepted("in the second window\n")
        await peer.aclose()


async def test_closing_the_peer_closes_its_views_and_fails_what_waits(
    window: VsCodeCompanion, peer: GeminiPeer
) -> None:
    reviewing = asyncio.create_task(peer.open_diff("/w/a.py", "proposed\n"))
    await opened(window)
    await peer.aclose()
    assert window.closed == [{"filePath": "/w/a.py", "suppressNotification": True}]
    with pytest.raises(IdeError, match="closed"):
        await reviewing
    assert not peer.connected


async def test_a_window_that_refuses_the_token_is_not_connected_to(window: VsCodeCompanion, workspace: Path) -> None:
    window.discovery(workspace, authToken="of another window")
    peer = GeminiPeer(workspace, os.environ)
    with pytest.raises(IdeError, match="refused with 401"):
        await peer.connect()
    await peer.aclose()
    with pytest.raises(IdeError):
        await peer.open_diff("/w/a.py", "x")
