"""Where reviews open in Neovim, and the autocommands by which users follow them."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import NeovimEditor
from isthmus.ide.editor import DiffAccepted, DiffRejected
from support.editing import make_file, review
from support.neovim import Heard, RunningNeovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_LAYOUT = """
local function named(node)
  if node[1] == "leaf" then
    local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(node[2])), ":t")
    return name .. (vim.wo[node[2]].diff and " (diff)" or "")
  end
  return { node[1], unpack(vim.tbl_map(named, node[2])) }
end
return named(vim.fn.winlayout())
"""
_NOTE_EVENTS = """
_G.events = {}
vim.api.nvim_create_autocmd("User", { pattern = "Isthmus*", callback = function(event)
  table.insert(_G.events, { event.match, event.data })
end })
"""


async def _choose(neovim: RunningNeovim, layout: str) -> None:
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0, layout = ... }", layout)


async def _sizes(neovim: RunningNeovim) -> str:
    return await neovim.lua("return vim.fn.winrestcmd()")


@pytest.mark.parametrize(
    ("layout", "shown"),
    [
        (
            "vertical",
            ["col", ["row", "a.py (on disk) (diff)", "a.py (proposed) (diff)"], ["row", "own.txt", "other.txt"]],
        ),
        ("horizontal", ["row", ["col", "a.py (on disk) (diff)", "a.py (proposed) (diff)"], "own.txt", "other.txt"]),
        (
            "window",
            ["col", ["row", "a.py (on disk) (diff)", "a.py (proposed) (diff)"], ["row", "own.txt", "other.txt"]],
        ),
    ],
)
async def test_a_review_opens_in_the_tab_page_of_the_user_and_leaves_it_as_it_was(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, layout: str, shown: list[Any]
) -> None:
    await _choose(neovim, layout)
    await neovim.command(f"edit {make_file(workspace, 'other.txt')}", f"20vsplit {make_file(workspace, 'own.txt')}")
    before = await _sizes(neovim)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    assert await neovim.lua(_LAYOUT) == shown
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")
    await view_is_closed(neovim)
    assert await neovim.lua(_LAYOUT) == ["row", "own.txt", "other.txt"]
    assert await _sizes(neovim) == before


async def test_the_window_that_has_the_file_becomes_one_side_and_stays(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await _choose(neovim, "window")
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}", "3")
    await editor.open_diff(review(path, "one\nTWO\nthree\n"))
    assert await neovim.lua(_LAYOUT) == ["row", "a.py (diff)", "a.py (proposed) (diff)"]
    await neovim.enter("q")
    assert await heard.decision() == DiffRejected("review-1")
    await view_is_closed(neovim)
    assert await neovim.lua(_LAYOUT) == "a.py"
    assert await neovim.lua("return vim.fn.line('.')") == 3


async def test_a_window_with_unsaved_changes_is_no_side_of_a_review(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await _choose(neovim, "window")
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await neovim.type("inew<Esc>")
    await editor.open_diff(review(path, "proposed\n"))
    assert await neovim.lua(_LAYOUT) == ["col", ["row", "a.py (on disk) (diff)", "a.py (proposed) (diff)"], "a.py"]


async def test_diffs_are_not_mixed_and_a_screen_without_room_gives_a_tab_page(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await _choose(neovim, "vertical")
    path = make_file(workspace, "a.py")
    await neovim.command("diffthis")
    await editor.open_diff(review(path, "proposed\n"))
    assert await neovim.tabs() == 2
    assert await editor.close_diff("review-1") == "proposed\n"
    await view_is_closed(neovim)
    await neovim.command("diffoff", "set winheight=12 winminheight=12")
    await editor.open_diff(review(path, "proposed\n", 2))
    assert await neovim.tabs() == 2


async def test_a_user_who_types_goes_on_and_is_told_in_which_window_the_review_waits(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await _choose(neovim, "horizontal")
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}")
    await neovim.type("ityped")
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type(" on<Esc>")
    assert (await neovim.lines())[0] == "typed onone"

    async def is_told() -> bool:
        messages: str = await neovim.lua("return vim.fn.execute('messages')")
        return "review of a.py waits in window 2 (2 CTRL-W w)" in " ".join(messages.split())

    await eventually_async(is_told, what="the window")


async def test_autocommands_tell_how_many_hunks_were_accepted(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.lua(_NOTE_EVENTS)
    await editor.open_diff(review(make_file(workspace, "a.py"), "ONE\ntwo\nTHREE\nfour\n"))
    await neovim.enter("1IsthmusHunkReject")
    await neovim.type("Goown<Esc>")
    await neovim.enter("w")
    await view_is_closed(neovim)
    await editor.open_diff(review(f"{workspace}/new.py", "new\n", 2))
    await neovim.enter("w")
    await view_is_closed(neovim)

    async def told() -> list[Any]:
        events = await neovim.lua("return _G.events")
        keys = ("new_file", "hunks", "accepted_hunks", "edited")
        return [[data.get(key) for key in keys] for name, data in events if name == "IsthmusDiffClosed"]

    async def is_told() -> bool:
        assert await told() == [[False, 2, 0, True], [True, 1, 1, False]]
        return True

    await eventually_async(is_told)


async def test_autocommands_tell_what_became_of_a_review_and_which_agents_are_there(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.lua(_NOTE_EVENTS)
    await neovim.command("autocmd User IsthmusDetached lua error('a hook that fails')")
    editor.agents_changed({"1": "Gemini CLI"})
    expected: list[Any] = [["IsthmusAttached", {"agent": "Gemini CLI"}]]
    for number, keys in enumerate((":w<CR>", ":q<CR>", "")):
        await editor.open_diff(review(path, "proposed\n", number))
        await neovim.type(keys)
        if not keys:
            await editor.close_diff(f"review-{number}")
        await view_is_closed(neovim)
        about = {"id": f"review-{number}", "path": path, "agent": "Gemini CLI", "new_file": False}
        outcome = ("accepted", "rejected", "elsewhere")[number]
        closed = {"outcome": outcome, "accepted": number == 0, "rejected": number == 1, "hunks": 1, "edited": False}
        taken = {} if number == 2 else {"accepted_hunks": 1 - number}
        expected += [
            ["IsthmusDiffOpened", about | {"hunks": 1, "added": 1, "removed": 3}],
            ["IsthmusDiffClosed", about | closed | taken],
        ]
    await editor.aclose()
    expected.append(["IsthmusDetached", {"agent": "Gemini CLI"}])

    async def are_seen() -> bool:
        seen = await neovim.lua("return _G.events")
        assert seen == expected
        return True

    await eventually_async(are_seen)
