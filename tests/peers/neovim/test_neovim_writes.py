"""Writes of a proposal: a command that the user typed or mapped accepts it, and nothing else does."""

from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor
from isthmus.ide.editor import DiffAccepted
from support.editing import make_file, review
from support.neovim import Heard, RunningNeovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PLAIN = ""
AUTOWRITE = "set autowrite | set makeprg=true"
AUTOWRITE_ALL = "set autowriteall | set makeprg=true"
NESTED = "autocmd InsertLeave,TextChanged,BufLeave,WinLeave,FocusLost,CursorHold * ++nested silent! write"
NOT_NESTED = "autocmd InsertLeave,TextChanged,BufLeave,WinLeave,FocusLost,CursorHold * silent! write"
UPDATES = "autocmd BufLeave,WinLeave,TextChanged * ++nested silent! wall"
DEBOUNCED = """lua vim.api.nvim_create_autocmd({ "InsertLeave", "TextChanged", "BufLeave" }, { nested = true,
callback = function() vim.defer_fn(function() vim.cmd("silent! write") end, 20) end })"""
LATER = "call timer_start(30, {-> execute('silent! write', 'silent!')}, {'repeat': 3})"
LUA_NESTED = """lua vim.api.nvim_create_autocmd({ "InsertLeave", "TextChanged", "WinLeave" }, { nested = true,
callback = function(event) vim.api.nvim_buf_call(event.buf, function() vim.cmd("silent! write") end) end })"""
SAVING = (PLAIN, AUTOWRITE, AUTOWRITE_ALL, NESTED, NOT_NESTED, UPDATES, DEBOUNCED, LATER, LUA_NESTED)
IDS = ["plain", "autowrite", "autowriteall", "nested", "not nested", "wall", "debounced", "timer", "lua"]
"""Options and autocommands that save by themselves, as in 907th/vim-auto-save and okuuva/auto-save.nvim."""


@pytest.mark.parametrize("saving", SAVING, ids=IDS)
@pytest.mark.parametrize(
    "keys",
    [
        ":silent make<CR>",
        ":silent !true<CR>",
        "gt",
        "<C-w>w",
        "ihello<Esc>",
        "x",
        ":next<CR>",
    ],
)
async def test_what_saves_by_itself_accepts_nothing(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, saving: str, keys: str
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.command(" ".join(saving.splitlines()))
    await neovim.type(keys)
    await neovim.type("<Esc>")
    await neovim.wait_in_vain()
    assert heard.decisions == []


@pytest.mark.parametrize("saving", SAVING, ids=IDS)
@pytest.mark.parametrize("keys", [":w<CR>", ":up<CR>", ":wq<CR>", ":x<CR>", "ZZ", "<C-s>", "<Space>w", "<Space>u"])
async def test_write_commands_that_are_typed_or_mapped_accept_whatever_saves_beside_them(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, saving: str, keys: str
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command("nnoremap <C-s> <Cmd>update<CR>", "nnoremap <Space>w :w<CR>", "nnoremap <Space>u <Cmd>w<CR>")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.command(" ".join(saving.splitlines()))
    await neovim.type(keys)
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")
    await view_is_closed(neovim)


async def test_what_was_saved_by_itself_is_said_once_and_a_typed_command_then_accepts(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.command(NESTED)
    for _ in range(3):
        await neovim.type("ihello<Esc>")

    async def said() -> list[str]:
        text = str(await neovim.lua("return vim.fn.execute('messages')"))
        return [line for line in text.splitlines() if "saved it" in line]

    lines = await eventually_async(said)
    assert len(lines) == 1
    assert "is not accepted: an autocommand saved it" in lines[0]
    await neovim.enter("w")
    await heard.decision()
