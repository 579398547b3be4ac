import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, NeovimLimits, attach, default_address
from isthmus.files.locations import data_directory
from isthmus.ide.editor import (
    DiffAccepted,
    DiffRejected,
    EditorError,
    EditorGoneError,
)
from isthmus.ide.options import CompanionOptions
from isthmus.ide.reviews.kept_text import KeptTexts
from support.companion import running_host
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.isthmus_program import companion_program
from support.neovim import Heard, RunningNeovim, running_neovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_TABS = """
return vim.tbl_map(function(tab)
  local names = vim.tbl_map(function(window)
    return vim.fs.basename(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)))
  end, vim.api.nvim_tabpage_list_wins(tab))
  return names
end, vim.api.nvim_list_tabpages())
"""


@pytest.mark.parametrize("limits", [NeovimLimits(snapshot_seconds=0.3, view_seconds=0.3)], ids=["impatient"])
async def test_a_neovim_at_a_prompt_costs_a_deadline_and_shows_the_review_afterwards(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    known = await eventually_async(editor.open_files, what="the file is known")
    await neovim.connection.request("nvim_input", "r", timeout=30)  # waits for a character, and answers nothing else
    assert await editor.open_files() == known
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.connection.request("nvim_input", "<Esc>", timeout=30)
    await eventually_async(lambda: neovim.tabs(), what="an answer")
    assert await neovim.tabs() == 2
    await neovim.enter("write")
    await eventually_async(lambda: heard.decisions == [DiffAccepted("review-1", "proposed\n")])
    await view_is_closed(neovim)


@pytest.mark.parametrize("limits", [NeovimLimits(command_seconds=0.3, view_seconds=0.1)], ids=["impatient"])
async def test_a_review_that_was_taken_back_while_neovim_was_at_a_prompt_is_not_shown(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.connection.request("nvim_input", "r", timeout=30)
    await editor.open_diff(review(path, "proposed\n"))
    with pytest.raises(EditorError, match="waits at a prompt"):
        await editor.save(path)
    assert await editor.close_diff("review-1") == "proposed\n"
    await neovim.connection.request("nvim_input", "<Esc>", timeout=30)
    await view_is_closed(neovim)
    assert heard.decisions == []


async def test_a_neovim_that_has_not_started_gets_its_review_afterwards(workspace: Path) -> None:
    first, second = make_file(workspace, "a.py"), make_file(workspace, "b.py")

    async def attached_and_shown(address: str) -> NeovimEditor:
        editor = await attach(address, PATIENT_NEOVIM)
        await editor.open_diff(review(first, "proposed\n"))
        return editor

    async with running_neovim(workspace, "-p", first, second, mode="--embed") as neovim:
        showing = asyncio.create_task(attached_and_shown(neovim.address))
        # Without a screen it would wait without end, and answers its clients meanwhile.
        await asyncio.wait({showing}, timeout=0.2)
        assert await neovim.lua("return vim.v.vim_did_enter") == 0
        neovim.show_screen(80, 24)
        editor = await asyncio.wait_for(showing, 30)
        assert await neovim.lua(_TABS) == [["a.py"], ["a.py (on disk)", "a.py (proposed)"], ["b.py"]]
        await editor.aclose()


@pytest.mark.parametrize("command", ["qall", "wqall", "quitall!", "xall", "cquit"])
async def test_quitting_ends_the_changes_at_once_and_rejects_what_is_open(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.command("tabprevious")
    await neovim.quit(command)
    await asyncio.wait_for(heard.task, 30)
    assert heard.decisions == [DiffRejected("review-1")]
    with pytest.raises(EditorGoneError):
        await editor.open_files()
    with pytest.raises(EditorGoneError):
        await editor.open_diff(review(path, "proposed\n"))


async def test_a_crash_ends_the_changes_at_once(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    neovim.process.kill()
    await asyncio.wait_for(heard.task, 30)
    with pytest.raises(EditorGoneError):
        await editor.close_diff("review-1")


async def test_a_companion_that_leaves_takes_everything_with_it(neovim: RunningNeovim, workspace: Path) -> None:
    path = make_file(workspace, "a.py")
    editor = await attach(neovim.address, PATIENT_NEOVIM)
    await editor.open_diff(review(path, "proposed\n"))
    await editor.aclose()
    await view_is_closed(neovim)
    assert await neovim.lua("return vim.fn.exists(':IsthmusMention')") == 0
    assert await neovim.lua("return vim.tbl_isempty(_G.isthmus_sessions)") is True
    groups = await neovim.lua("return vim.fn.getcompletion('isthmus', 'augroup')")
    assert groups == []
    with pytest.raises(EditorGoneError):
        await editor.open_files()


async def test_a_companion_that_dies_leaves_what_the_user_typed(neovim: RunningNeovim, workspace: Path) -> None:
    editor = await attach(neovim.address, PATIENT_NEOVIM)
    await editor.open_diff(review(make_file(workspace, "b.py"), "proposed\n"))
    await editor.open_diff(review(make_file(workspace, "a.py"), "untouched\n", 2))
    await neovim.set_lines("typed by the user")
    # Cut the connection without a message, as kill -9 does.
    await neovim.lua("for c in pairs(_G.isthmus_sessions) do vim.fn.chanclose(c) end")
    await neovim.type("l")
    await eventually_async(lambda: _orphaned(neovim), what="the script noticed")
    assert await neovim.lines() == ["typed by the user"]
    await neovim.command("write rescued.txt")
    assert (workspace / "rescued.txt").read_text() == "typed by the user\n"
    await neovim.enter("write")
    (kept,) = [Path(path) for path in KeptTexts(data_directory() / "kept").paths()]
    assert kept.read_text() == "typed by the user\n"
    assert kept.name.endswith("-b.py")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert str(kept) in await neovim.lua("return vim.fn.execute('messages'):gsub('%s+', '')")
    await editor.aclose()


async def test_a_companion_ends_while_neovim_is_at_a_prompt_and_its_variables_go_later(
    neovim: RunningNeovim, workspace: Path
) -> None:
    editor = await attach(neovim.address, replace(PATIENT_NEOVIM, view_seconds=0.3))
    async with running_host(editor, CompanionOptions()):

        async def is_set() -> bool:
            return await neovim.lua("return vim.env.GEMINI_CLI_IDE_SERVER_PORT ~= nil")

        await eventually_async(is_set, what="the variables")
        await neovim.connection.request("nvim_input", "r", timeout=30)
    await neovim.connection.request("nvim_input", "<Esc>", timeout=30)

    async def is_unset() -> bool:
        return not await is_set() and await neovim.lua("return vim.tbl_isempty(_G.isthmus_sessions)")

    await eventually_async(is_unset, what="nothing is left of the companion")


async def _orphaned(neovim: RunningNeovim) -> bool:
    names = await neovim.buffers()
    return await neovim.tabs() == 2 and not any(" (proposed)" in name for name in names)


async def test_two_companions_at_one_neovim_do_not_disturb_each_other(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    other = await attach(neovim.address, PATIENT_NEOVIM)
    await editor.open_diff(review(path, "for the first\n", 1))
    await other.open_diff(review(path, "for the second\n", 2))
    await other.aclose()
    assert await neovim.lines() == ["for the first"]
    await neovim.enter("write")
    assert await heard.decision() == DiffAccepted("review-1", "for the first\n")


async def test_a_second_companion_says_that_there_is_one_already(neovim: RunningNeovim, workspace: Path) -> None:
    command = ("companion", "--editor", "nvim", "--address", neovim.address)
    with (
        companion_program(workspace, command=command) as first,
        companion_program(workspace, command=command) as second,
    ):
        assert (await asyncio.to_thread(second.end), await asyncio.to_thread(first.end)) == (0, 0)
        assert first.process.stderr is not None
        assert second.process.stderr is not None
        warning = f"Neovim already has another companion, on port {first.ready['port']}"
        assert warning in second.process.stderr.read()
        assert first.process.stderr.read() == ""


async def test_attaching_where_nobody_listens_names_the_address(tmp_path: Path) -> None:
    with pytest.raises(EditorError, match="no-socket"):
        await attach(str(tmp_path / "no-socket"))
    with pytest.raises(EditorError, match="127"):
        await attach("127.0.0.1:1")
    with pytest.raises(EditorError, match="--address"):
        default_address({})
    assert default_address({"NVIM": "/run/nvim"}) == "/run/nvim"


async def test_neovim_is_attached_to_over_tcp(workspace: Path) -> None:
    async with running_neovim(workspace) as neovim:
        address = await neovim.lua("return vim.fn.serverstart('127.0.0.1:0')")
        editor = await attach(address, PATIENT_NEOVIM)
        assert await editor.open_files() == ()
        await editor.aclose()


async def test_a_neovim_that_is_too_old_is_refused_in_one_line_with_its_version(
    neovim: RunningNeovim,
) -> None:
    found = await neovim.lua("local v = vim.version() return v.major .. '.' .. v.minor .. '.' .. v.patch")
    with pytest.raises(EditorError) as refused:
        await attach(neovim.address, NeovimLimits(oldest_version=(99, 8, 0)))
    assert str(refused.value) == f"Neovim {found} is too old: Isthmus needs Neovim 99.8 or newer"
    assert await neovim.lua("return vim.fn.exists(':IsthmusMention')") == 0, "something was put into it all the same"
