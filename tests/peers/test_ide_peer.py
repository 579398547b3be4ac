"""The agent's side of the companion protocol and the companion, over real sockets."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.neovim.editor import attach
from isthmus.ide.clients.client_base import Deadlines
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.context import Cursor
from isthmus.ide.gemini.peer import GeminiPeer
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected
from isthmus.ide.running.host import CompanionHost, Ready
from support.companion import RunningCompanion, running_companion
from support.editor_deadlines import PATIENT_LIMITS, PATIENT_NEOVIM
from support.neovim import RunningNeovim, running_neovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PATIENT = Deadlines(connect=30, first_context=30, close_diff=30, call=30, retry_first=0.02, retry_last=0.2, lost=60)


async def connected(workspace: Path, **variables: str) -> GeminiPeer:
    peer = GeminiPeer(workspace, os.environ | variables, deadlines=PATIENT)
    await peer.connect()
    return peer


def make_file(workspace: Path, name: str = "a.py") -> str:
    path = workspace / name
    path.write_text("one\ntwo\n", encoding="utf-8")
    return str(path)


async def shown(companion: RunningCompanion) -> str:
    """Return the id of the one review that the editor shows."""
    reviews = await eventually_async(lambda: companion.editor.open_reviews, what="a diff view")
    return reviews[0].id


@asynccontextmanager
async def neovim_companion(
    workspace: Path, *arguments: str
) -> AsyncGenerator[tuple[RunningNeovim, "asyncio.Task[None]"]]:
    """Start a Neovim and a companion that serves it."""
    async with running_neovim(workspace, *arguments) as neovim:
        host = CompanionHost(await attach(neovim.address, PATIENT_NEOVIM), limits=PATIENT_LIMITS)
        ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(host.run(ready.set_result))
        try:
            await asyncio.wait_for(ready, 30)
            yield neovim, running
        finally:
            host.stop()
            await asyncio.wait_for(running, 30)


def open_paths(peer: GeminiPeer) -> list[str]:
    """Return the open files, newest first."""
    context = peer.context()
    state = context.workspace_state if context is not None else None
    return [file.path for file in (state.open_files or ())] if state is not None else []


@pytest.mark.requirement("GEM-049", "GEM-050")
async def test_buffers_without_a_file_on_disk_never_reach_the_agent(workspace: Path) -> None:
    kept, deleted = make_file(workspace, "kept.py"), make_file(workspace, "deleted.py")
    async with neovim_companion(workspace, kept, deleted) as (neovim, _):
        peer = await connected(workspace)
        assert set(open_paths(peer)) == {kept, deleted}
        await neovim.command(
            "new", "call setline(1, 'unnamed')",
            "new scratch.txt | setlocal buftype=nofile",
            "new | terminal",
            "help",
            "copen",
            "new unsaved.txt | call setline(1, 'no file yet')",
            f"call delete('{deleted}')",
        )  # fmt: skip
        reviewing = asyncio.create_task(peer.open_diff(str(workspace / "new.py"), "new\n"))
        await eventually_async(lambda: two_tabs(neovim), what="the diff view")
        await neovim.command("diffthis", "tabprevious")
        await eventually_async(lambda: open_paths(peer) == [kept], what="only the file on disk is left")
        await peer.close_diff(str(workspace / "new.py"))
        await reviewing
        await peer.aclose()


def _are_open(peer: GeminiPeer, paths: list[str]) -> bool:
    return open_paths(peer) == paths


@pytest.mark.requirement("GEM-053", "GEM-036", "GEM-047")
async def test_focus_and_cursor_in_neovim_reach_the_agent(workspace: Path) -> None:
    first, second = make_file(workspace, "first.py"), make_file(workspace, "second.py")
    async with neovim_companion(workspace, first) as (neovim, _):
        peer = await connected(workspace)
        for path, other in ((second, first), (first, second)):
            await neovim.command(f"edit {path}")
            newest_first = [path, other]
            await eventually_async(partial(_are_open, peer, newest_first), what="the newest is first")
        await neovim.type("jl")

        def moved() -> bool:
            context = peer.context()
            active = context.active_file if context is not None else None
            return active is not None and (active.path, active.cursor) == (first, Cursor(2, 2))

        await eventually_async(moved, what="the cursor")
        await peer.aclose()


async def two_tabs(neovim: RunningNeovim) -> bool:
    return await neovim.tabs() == 2


@pytest.mark.requirement("GEM-008", "GEM-021", "GEM-051")
async def test_the_agent_finds_the_companion_by_its_file_and_knows_what_is_open(workspace: Path) -> None:
    path = make_file(workspace)
    async with running_companion(workspace) as companion:
        await companion.editor.open_file(path)
        peer = await connected(workspace)
        assert (peer.connected, peer.can_review) == (True, True)
        assert peer.ide_name == companion.editor.identity.display_name
        context = peer.context()
        assert context is not None
        assert context.active_file is not None
        assert context.active_file.path == path
        await peer.aclose()


@pytest.mark.requirement("GEM-019")
async def test_an_agent_elsewhere_does_not_connect(workspace: Path, tmp_path: Path) -> None:
    async with running_companion(workspace):
        with pytest.raises(IdeError, match=f"which do not contain {tmp_path}"):
            await GeminiPeer(tmp_path, os.environ).connect()


@pytest.mark.requirement("GEM-030")
async def test_of_two_companions_on_one_workspace_the_environment_names_ours(workspace: Path) -> None:
    async with running_companion(workspace) as one, running_companion(workspace, fresh=True) as two:
        for companion in (one, two):
            port = companion.ready.port
            peer = await connected(workspace, GEMINI_CLI_IDE_SERVER_PORT=str(port))
            assert peer.companion is not None
            assert peer.companion.port == port
            await peer.aclose()


@pytest.mark.requirement("GEM-070", "GEM-078", "GEM-081")
async def test_what_the_user_accepts_in_neovim_reaches_the_agent(workspace: Path) -> None:
    path = make_file(workspace)
    async with neovim_companion(workspace, path) as (neovim, running):
        peer = await connected(workspace)
        assert peer.ide_name == "Neovim"
        context = peer.context()
        assert context is not None
        assert context.active_file is not None
        assert context.active_file.path == path

        reviewing = asyncio.create_task(peer.open_diff(path, "one\nTWO\n"))
        await eventually_async(lambda: two_tabs(neovim), what="the diff view")
        await neovim.set_lines("one", "TWO", "three")
        await neovim.enter("wq")
        assert await asyncio.wait_for(reviewing, 30) == Accepted("one\nTWO\nthree\n")
        await view_is_closed(neovim)

        reviewing = asyncio.create_task(peer.open_diff(path, "no\n"))
        await eventually_async(lambda: two_tabs(neovim), what="the diff view")
        await neovim.command("quit")
        assert await asyncio.wait_for(reviewing, 30) == Rejected()

        await neovim.quit()
        await asyncio.wait_for(running, 30)
        await eventually_async(lambda: not peer.connected, what="the agent notices that the editor is gone")
        await peer.aclose()


@pytest.mark.requirement("GEM-072", "GEM-076")
async def test_the_agent_takes_a_review_back_with_the_users_edits(workspace: Path) -> None:
    path = make_file(workspace)
    async with running_companion(workspace) as companion:
        peer = await connected(workspace)
        reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
        companion.editor.edit_diff(await shown(companion), "edited\n")
        assert await peer.close_diff(path) == "edited\n"
        assert await asyncio.wait_for(reviewing, 30) == Closed("edited\n")
        await peer.aclose()


async def test_cancelling_closes_the_view(workspace: Path) -> None:
    path = make_file(workspace)
    async with running_companion(workspace) as companion:
        peer = await connected(workspace)
        reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
        await shown(companion)
        reviewing.cancel()
        await eventually_async(lambda: not companion.editor.open_reviews, what="the view is closed")
        await peer.aclose()


async def test_leaving_an_ide_that_is_gone_waits_for_nothing(workspace: Path) -> None:
    path = make_file(workspace)
    endless = replace(PATIENT, connect=3600)
    async with running_companion(workspace) as companion:
        peer = GeminiPeer(workspace, os.environ, deadlines=endless)
        await peer.connect()
        reviewing = asyncio.create_task(peer.open_diff(path, "new\n"))
        await shown(companion)
    await eventually_async(lambda: not peer.connected, what="the connection is lost")
    reviewing.cancel()
    await asyncio.wait({reviewing})
    await asyncio.wait_for(peer.aclose(), 60)


async def test_a_restarted_companion_shows_the_waiting_review_again(workspace: Path) -> None:
    path = make_file(workspace)
    async with running_companion(workspace) as first:
        peer = await connected(workspace)
        reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
        await shown(first)
    await eventually_async(lambda: not peer.connected, what="the agent notices")
    async with running_companion(workspace) as second:
        second.editor.accept_diff(await shown(second))
        assert await asyncio.wait_for(reviewing, 30) == Accepted("proposed\n")
        await peer.aclose()


async def test_leaving_an_ide_that_hangs_in_a_review_takes_no_longer_than_closing_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_file(workspace)
    hangs, goes_on = asyncio.Event(), asyncio.Event()

    async def hang(editor: HeadlessEditor, review: DiffReview) -> None:
        hangs.set()
        await goes_on.wait()

    async with running_companion(workspace) as first:
        peer = GeminiPeer(workspace, os.environ, deadlines=replace(PATIENT, open_diff=3600, close_diff=0.1))
        await peer.connect()
        reviewing = asyncio.create_task(peer.open_diff(path, "proposed\n"))
        await shown(first)
    monkeypatch.setattr(HeadlessEditor, "open_diff", hang)
    async with running_companion(workspace):
        await asyncio.wait_for(hangs.wait(), 60)
        await asyncio.wait_for(peer.aclose(), 60)
        with pytest.raises(IdeError, match="was closed"):
            await reviewing
        goes_on.set()
