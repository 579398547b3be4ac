"""Files that another program writes are read again, as far as the user's settings allow it; their views stay."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import NeovimEditor
from support.editing import make_file
from support.neovim import RunningNeovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NUMBERED = "".join(f"line {number}\n" for number in range(1, 201))
VIEW = """
local fold = { vim.fn.foldclosed(50), vim.fn.foldclosedend(50) }
return { view = vim.fn.winsaveview(), mark = vim.fn.getpos("'a"), fold = fold }
"""


async def test_cursor_view_mark_folds_and_undo_stay(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", NUMBERED)
    await neovim.command(f"edit {path}", "split", "100", "mark a", "50,52fold", "normal! 120Gzt3l")
    before: dict[str, Any] = await neovim.lua(VIEW)
    make_file(workspace, "a.txt", NUMBERED.replace("line 150\n", "LINE 150\n"))
    await editor.reload([path])
    assert (await neovim.lines())[149] == "LINE 150"
    assert await neovim.lua(VIEW) == before
    assert before["fold"] == [50, 52]
    await neovim.command("wincmd w")
    assert await neovim.lua("return vim.fn.line('.')") == 1
    await neovim.command("undo")
    assert (await neovim.lines())[149] == "line 150"


async def test_without_autoread_nothing_is_read(neovim: RunningNeovim, editor: NeovimEditor, workspace: Path) -> None:
    path = make_file(workspace, "a.txt", "old\n")
    await neovim.command(f"edit {path}", "setlocal noautoread")
    make_file(workspace, "a.txt", "a new text\n")
    await editor.reload([path])
    assert await neovim.lines() == ["old"]


async def test_the_users_autocommand_decides(neovim: RunningNeovim, editor: NeovimEditor, workspace: Path) -> None:
    path = make_file(workspace, "a.txt", "old\n")
    await neovim.command(f"edit {path}", "set noautoread", "autocmd FileChangedShell * let v:fcs_choice = 'reload'")
    make_file(workspace, "a.txt", "a new text\n")
    await editor.reload([path])
    assert await neovim.lines() == ["a new text"]


async def test_a_buffer_in_which_the_user_types_is_read_afterwards(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", "old\n")
    await neovim.command(f"edit {path}")
    await neovim.type("i")
    make_file(workspace, "a.txt", "a new text\n")
    await editor.reload([path])
    assert await neovim.lines() == ["old"]
    await neovim.type("<Esc>")

    async def shown() -> bool:
        return await neovim.lines() == ["a new text"]

    await eventually_async(shown, what="the buffer equals the disk")


async def test_a_conflict_is_told_once_and_writing_asks(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", "old\n")
    await neovim.command(f"edit {path}")
    await neovim.set_lines("mine")
    for text in ("a new text\n", "a newer text\n"):
        make_file(workspace, "a.txt", text)
        await editor.reload([path])
    assert await neovim.lua("return select(2, vim.fn.execute('messages'):gsub('changed on disk', ''))") == 1
    assert await neovim.lines() == ["mine"]
    assert await neovim.lua("return vim.bo.modified")
    await neovim.type(":write<CR>")
    assert (workspace / "a.txt").read_text() == "a newer text\n"
    await neovim.type("n<CR>")


async def test_many_files_in_background_are_read(neovim: RunningNeovim, editor: NeovimEditor, workspace: Path) -> None:
    paths = [make_file(workspace, f"{number}.txt", "old\n") for number in range(30)]
    await neovim.command(*(f"edit {path}" for path in paths))
    for number in range(30):
        make_file(workspace, f"{number}.txt", f"new {number}\n")
    await editor.reload(paths)
    lines = await neovim.lua(
        "return vim.tbl_map(function(p) return vim.fn.getbufline(vim.fn.bufnr(p), 1)[1] end, ...)", paths
    )
    assert lines == [f"new {number}" for number in range(30)]
    assert await neovim.lua("return vim.fn.execute('messages')") == ""
