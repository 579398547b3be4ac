"""Mentions and sends from file trees in Neovim: of the file under the cursor, of marked ones, and of a range.

netrw comes with Neovim. ISTHMUS_NEOVIM_TREES names a folder with the other trees, under the names of their
repositories: nvim-tree.lua, neo-tree.nvim (with nui.nvim and plenary.nvim), oil.nvim, mini.files and snacks.nvim.
Without it the stand-ins below are used, which have the functions of these plugins that are called, with their names and
results.
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import FileMentioned
from support.editing import make_file
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import Heard, RunningNeovim, hearing, neovim_with_plugin, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PLUGINS = os.environ.get("ISTHMUS_NEOVIM_TREES", "")
"""Read once: tests do not see the variables of the developer."""
_FOLDERS: Mapping[str, tuple[str, ...]] = {
    "nvim-tree": ("nvim-tree.lua",),
    "neo-tree": ("neo-tree.nvim", "nui.nvim", "plenary.nvim"),
    "oil": ("oil.nvim",),
    "mini.files": ("mini.files",),
    "snacks": ("snacks.nvim",),
}
_OPEN: Mapping[str, str] = {
    "netrw": "vim.cmd('Explore .')",
    "nvim-tree": "require('nvim-tree').setup({}); require('nvim-tree.api').tree.open()",
    "neo-tree": "require('neo-tree').setup({}); vim.cmd('Neotree focus')",
    "oil": "require('oil').setup({ columns = {} }); vim.cmd('Oil .')",
    "mini.files": "require('mini.files').setup({}); MiniFiles.open('.')",
    "snacks": "require('snacks').setup({ explorer = {}, picker = {} }); Snacks.explorer()",
}
"""How users open each tree on the workspace."""
_STAND_IN = """
local tree, root = ...
local entries = { "..", "a.py", "b c.py", "lib" }
local function path(line) return line > 1 and entries[line] and root .. "/" .. entries[line] or nil end
local function kind(line) return entries[line] == "lib" and "directory" or "file" end
local buffer = vim.api.nvim_create_buf(false, true)
vim.api.nvim_buf_set_lines(buffer, 0, -1, false, entries)
vim.api.nvim_win_set_buf(0, buffer)
local marked = {}
_G.mark = function(line) table.insert(marked, line) end
if tree == "nvim-tree" then
  vim.bo.filetype = "NvimTree"
  local function node(line)
    return { name = entries[line], absolute_path = path(line) or root, type = kind(line) }
  end
  package.loaded["nvim-tree.api"] = {
    marks = { list = function() return vim.tbl_map(node, marked) end },
    tree = { get_node_under_cursor = function() return node(vim.api.nvim_win_get_cursor(0)[1]) end },
  }
elseif tree == "neo-tree" then
  vim.bo.filetype = "neo-tree"
  local function node(_, line)
    return path(line) and { path = path(line), type = kind(line), get_id = function() return path(line) end } or
      { type = "message", get_id = function() return "" end }
  end
  package.loaded["neo-tree.sources.manager"] = {
    get_state_for_window = function() return { tree = { get_node = node } } end,
  }
elseif tree == "oil" then
  vim.bo.filetype, vim.bo.buftype = "oil", "acwrite"
  package.loaded["oil"] = {
    get_current_dir = function() return root .. "/" end,
    get_entry_on_line = function(_, line) return { name = entries[line], type = kind(line) } end,
  }
elseif tree == "mini.files" then
  vim.bo.filetype = "minifiles"
  package.loaded["mini.files"] = {
    get_fs_entry = function(_, line)
      return path(line) and { path = path(line), name = entries[line], fs_type = kind(line) }
    end,
  }
else
  vim.bo.filetype = "snacks_picker_list"
  local function item(line) return { file = entries[line], cwd = root, idx = line } end
  local picker = { list = { win = { win = vim.api.nvim_get_current_win() } }, input = { win = {} } }
  function picker:resolve(each) return each end
  function picker:selected(options)
    local found = vim.tbl_map(item, marked)
    return #found == 0 and options.fallback and { item(vim.api.nvim_win_get_cursor(0)[1]) } or found
  end
  function picker.list:row2idx(row) return row end
  function picker.list:get(line) return item(line) end
  package.loaded["snacks"] = { picker = {
    get = function() return { picker } end,
    util = { path = function(each) return each.cwd .. "/" .. each.file end },
  } }
end
"""
"""A tree whose first line is the folder above, as literal copies of the plugins' functions."""
_GO_TO = """
for line = 1, vim.fn.line("$") do
  if vim.fn.getline(line):find(..., 1, true) then
    vim.api.nvim_win_set_cursor(0, { line, 0 })
    return line
  end
end
return false
"""


def _arguments(tree: str) -> list[str]:
    folders = ",".join(str(Path(PLUGINS, name)) for name in _FOLDERS.get(tree, ()))
    return ["--cmd", f"set runtimepath^={folders}"] if PLUGINS and folders else []


async def _open(neovim: RunningNeovim, tree: str, workspace: Path) -> None:
    if tree == "netrw" or PLUGINS:
        await neovim.lua(_OPEN[tree])
    else:
        await neovim.lua(_STAND_IN, tree, str(workspace))
    await _go_to(neovim, "a.py")


async def _go_to(neovim: RunningNeovim, text: str) -> int:
    async def is_there() -> int:
        return await neovim.lua(_GO_TO, text)

    return await eventually_async(is_there, what=f"{text} is in the tree")


def _files(workspace: Path) -> tuple[str, str]:
    (workspace / "lib").mkdir()
    make_file(workspace / "lib", "d.py")
    return make_file(workspace, "a.py"), make_file(workspace, "b c.py")


@asynccontextmanager
async def _tree(workspace: Path, tree: str) -> AsyncGenerator[tuple[RunningNeovim, Heard]]:
    async with running_neovim(workspace, *_arguments(tree)) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        try:
            async with hearing(editor) as heard:
                await _open(neovim, tree, workspace)
                yield neovim, heard
        finally:
            await editor.aclose()


async def _mentioned(heard: Heard, *paths: str) -> None:
    def found() -> list[str]:
        return [event.path for event in heard.events if isinstance(event, FileMentioned)]

    await eventually_async(lambda: len(found()) >= len(paths), what="the mentions")
    assert found() == list(paths)


@pytest.mark.parametrize("tree", list(_OPEN))
async def test_the_file_under_the_cursor_is_mentioned_and_so_is_a_folder(workspace: Path, tree: str) -> None:
    _, spaced = _files(workspace)
    async with _tree(workspace, tree) as (neovim, heard):
        await _go_to(neovim, "b c.py")
        await neovim.enter("IsthmusMention")
        await _mentioned(heard, spaced)
        await _go_to(neovim, "lib")
        await neovim.enter("IsthmusMention")
        await _mentioned(heard, spaced, f"{workspace}/lib/")


@pytest.mark.parametrize("tree", list(_OPEN))
async def test_the_files_of_a_range_are_mentioned(workspace: Path, tree: str) -> None:
    plain, spaced = _files(workspace)
    async with _tree(workspace, tree) as (neovim, heard):
        lines = sorted([await _go_to(neovim, "a.py"), await _go_to(neovim, "b c.py")])
        await neovim.enter(f"{lines[0]},{lines[1]}IsthmusMention")
        await _mentioned(heard, plain, spaced)


@pytest.mark.parametrize("tree", ["netrw", "nvim-tree", "snacks"])
async def test_marked_files_are_mentioned(workspace: Path, tree: str) -> None:
    plain, spaced = _files(workspace)
    async with _tree(workspace, tree) as (neovim, heard):
        for name in ("a.py", "b c.py"):
            line = await _go_to(neovim, name)
            if tree == "netrw":
                await neovim.type("mf")
            elif PLUGINS:
                await neovim.type({"nvim-tree": "m", "snacks": "<Tab>"}[tree])
            else:
                await neovim.lua("_G.mark(...)", line)
        await _go_to(neovim, "lib")
        await neovim.enter("IsthmusMention")
        await _mentioned(heard, plain, spaced)


async def test_a_file_in_an_open_folder_of_netrws_tree_is_mentioned(workspace: Path) -> None:
    _files(workspace)
    async with running_neovim(workspace, "--cmd", "let g:netrw_liststyle = 3") as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with hearing(editor) as heard:
            await _open(neovim, "netrw", workspace)
            await _go_to(neovim, "lib/")
            await neovim.type("<CR>")
            await _go_to(neovim, "d.py")
            await neovim.enter("IsthmusMention")
            await _mentioned(heard, str(workspace / "lib" / "d.py"))
        await editor.aclose()


async def test_where_no_file_is_meant_it_is_said_and_what_to_do(workspace: Path) -> None:
    _files(workspace)
    async with _tree(workspace, "oil") as (neovim, heard):
        if not PLUGINS:
            await neovim.command("1")
            await neovim.enter("IsthmusMention")
            assert await neovim.has_message("no file is under the cursor in oil.nvim; go to one, or mark some")
        await neovim.lua("package.loaded['oil'] = { get_current_dir = function() error('it is another version') end }")
        await neovim.enter("IsthmusMention")
        assert await neovim.has_message("oil.nvim did not tell which file is meant: ")
        await neovim.command("terminal")
        await neovim.enter("IsthmusMention")
        assert await neovim.has_message("this buffer is a terminal; name a file: :IsthmusMention FILE")
        assert not [event for event in heard.events if isinstance(event, FileMentioned)]


async def test_a_named_file_is_mentioned_with_its_lines(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    plain, spaced = _files(workspace)
    await neovim.enter(
        "IsthmusMention b c.py", "IsthmusMention b c.py 2 3", "IsthmusMention a.py 2", "IsthmusMention lib"
    )
    expected = [FileMentioned(spaced), FileMentioned(spaced, 1, 2), FileMentioned(plain, 1, 1)]
    expected.append(FileMentioned(f"{workspace}/lib/"))

    def found() -> bool:
        return [event for event in heard.events if isinstance(event, FileMentioned)] == expected

    await eventually_async(found, what="the mentions")
    await neovim.enter("IsthmusMention a.py 3 2")
    assert await neovim.has_message("expected lines from 1 on, such as :IsthmusMention a.py 3 9")


@pytest.mark.parametrize("tree", ["netrw", "oil"])
async def test_files_of_a_tree_are_sent_to_the_terminal_of_an_agent(workspace: Path, tmp_path: Path, tree: str) -> None:
    _files(workspace)
    agent = tmp_path / "claude"
    agent.write_text(
        f"#!/bin/sh\ncd {tmp_path}\nstty raw -echo\nprintf '\\033[?2004h'\ncat > received\n", encoding="utf-8"
    )
    agent.chmod(0o700)
    async with neovim_with_plugin(workspace, autostart=False, terminal={"command": [str(agent)]}) as neovim:
        await neovim.command(
            f"set runtimepath^={','.join(str(Path(PLUGINS, name)) for name in _FOLDERS.get(tree, ()))}"
        )
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        await neovim.lua("_G.isthmus_environment = { former = {} }")
        await neovim.command("IsthmusTerminal", "IsthmusFocus")
        await _open(neovim, tree, workspace)
        lines = sorted([await _go_to(neovim, "a.py"), await _go_to(neovim, "b c.py")])
        await neovim.command(f"{lines[0]},{lines[1]}IsthmusSend")
        received = tmp_path / "received"
        sent = b'\x1b[200~@a.py @"b c.py" \x1b[201~'
        await eventually_async(lambda: received.exists() and received.read_bytes() == sent, what="the mentions")
        await editor.aclose()
        await neovim.command("IsthmusSend")
        await eventually_async(lambda: neovim.has_message("no companion is attached to this Neovim, which knows"))
