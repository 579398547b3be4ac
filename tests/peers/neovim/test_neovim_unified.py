"""Reviews in one buffer of Neovim, with the removed lines between those of the proposal."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import NeovimEditor
from isthmus.ide.editor import DiffAccepted, DiffRejected
from support.editing import make_file, review
from support.neovim import Heard, RunningNeovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_SHOWN = """
local shown = {}
local marks = {}
for name, space in pairs(vim.api.nvim_get_namespaces()) do
  if name:match("^isthmus_unified_") then
    marks = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })
  end
end
local added, above, below = {}, {}, {}
for _, mark in ipairs(marks) do
  local row, details = mark[2], mark[4]
  added[row] = added[row] or details.line_hl_group ~= nil
  if details.virt_lines then
    local texts = vim.tbl_map(function(line) return line[1][1]:sub(1, 1) .. line[2][1] end, details.virt_lines)
    if details.virt_lines_above then above[row] = texts else below[row] = texts end
  end
end
for row, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
  vim.list_extend(shown, above[row - 1] or {})
  table.insert(shown, (added[row - 1] and "+" or " ") .. line)
  vim.list_extend(shown, below[row - 1] or {})
end
return shown
"""
"""What the user sees, line by line."""
OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW = "ONE\ntwo\nfour\nfive\nsix\n"


async def _open(neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, layout: str = "unified") -> None:
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0, layout = ... }", layout)
    await editor.open_diff(review(make_file(workspace, "a.py", OLD), NEW))


async def _screen(neovim: RunningNeovim) -> list[str]:
    """Return the rows of the review's window, below its bar."""
    return await neovim.lua(
        """
        vim.cmd("redraw")
        local top, rows = vim.fn.win_screenpos(0)[1], {}
        for row = 1, vim.api.nvim_win_get_height(0) - 1 do
          local cells = {}
          for column = 1, vim.o.columns do
            cells[column] = vim.fn.screenstring(top + row, column)
          end
          rows[row] = (table.concat(cells):gsub("%s+$", ""))
        end
        return rows
        """
    )


async def _shows(neovim: RunningNeovim, *lines: str) -> None:
    async def is_so() -> bool:
        shown: list[str] = await neovim.lua(_SHOWN)
        assert shown == list(lines)
        return True

    await eventually_async(is_so)


@pytest.mark.parametrize(("layout", "tabs", "windows"), [("unified", 2, 1), ("unified-split", 1, 2)])
async def test_a_review_is_one_buffer_with_the_removed_lines_in_it(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, layout: str, tabs: int, windows: int
) -> None:
    await _open(neovim, editor, workspace, layout)
    await _shows(neovim, "-one", "+ONE", " two", "-three", " four", " five", "+six")
    assert await neovim.tabs() == tabs
    assert await neovim.lua("return { vim.fn.winnr('$'), vim.wo.diff, vim.fn.line('.') }") == [windows, False, 1]
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", NEW)
    await view_is_closed(neovim)


async def test_the_lines_above_the_first_one_are_on_the_screen(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await _open(neovim, editor, workspace)
    assert (await _screen(neovim))[:3] == ["- one", "+ ONE", "  two"]


async def test_removed_lines_stand_in_line_with_the_others_beside_numbers_and_with_tabs(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command("set number tabstop=4")
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0, layout = 'unified' }")
    await editor.open_diff(review(make_file(workspace, "a.txt", "one\na\tb\n"), "one\na\tc\n"))
    assert (await _screen(neovim))[:3] == ["    1 one", "-     a   b", "+   2 a   c"]


async def test_edits_and_decided_hunks_are_drawn_anew(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await _open(neovim, editor, workspace)
    await neovim.enter("IsthmusHunkReject")
    await _shows(neovim, " one", " two", "-three", " four", " five", "+six")
    await neovim.type("]c")
    assert await neovim.lua("return vim.fn.line('.')") == 3
    await neovim.type("]c")
    assert await neovim.lua("return vim.fn.line('.')") == 5
    await neovim.type("[c")
    await neovim.type("Onew<Esc>")
    await _shows(neovim, " one", " two", "-three", "+new", " four", " five", "+six")
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", "one\ntwo\nnew\nfour\nfive\nsix\n")


async def test_closing_it_rejects_and_a_removed_end_is_shown_behind_the_text(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0, layout = 'unified' }")
    await editor.open_diff(review(make_file(workspace, "a.py", OLD), "one\ntwo\n"))
    await _shows(neovim, " one", " two", "-three", "-four", "-five")
    await neovim.enter("q")
    assert await heard.decision() == DiffRejected("review-1")
    await view_is_closed(neovim)


async def test_the_bar_says_what_is_new_and_what_is_not_saved(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command("set columns=120", f"edit {make_file(workspace, 'a.py', OLD)}")
    await neovim.set_lines("mine")
    await _open(neovim, editor, workspace)
    assert "a.py, without your unsaved changes" in await neovim.lua("return vim.wo.winbar")
    await neovim.enter("w")
    await view_is_closed(neovim)
    await editor.open_diff(review(f"{workspace}/new.py", "new\n", 2))
    assert "new.py, new file" in await neovim.lua("return vim.wo.winbar")
    assert await neovim.lines() == ["new"]


async def test_the_users_colours_are_kept(neovim: RunningNeovim, editor: NeovimEditor, workspace: Path) -> None:
    await neovim.command("highlight IsthmusAdded guibg=#123456")
    await _open(neovim, editor, workspace)
    found: dict[str, Any] = await neovim.lua("return vim.api.nvim_get_hl_by_name('IsthmusAdded', true)")
    assert found["background"] == 0x123456
