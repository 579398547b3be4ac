"""Other programs at Neovim's socket, such as an agent in `:terminal`: what they send answers nothing, in no way."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.editors.neovim.msgpack_rpc import RpcConnection
from isthmus.ide.editor import DiffAccepted, DiffRejected
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import SCREEN, Heard, RunningNeovim, another_program, hearing, running_neovim, view_is_closed
from support.programs import require
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

Way = Callable[[RpcConnection, str], Awaitable[object]]
"""How a program, with its connection or the address of the socket, tries to answer."""

_PROPOSAL = """
for _, window in ipairs(vim.api.nvim_list_wins()) do
  if vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window)):find(" (proposed)", 1, true) then
    return window
  end
end
return vim.NIL
"""
_DROP_REVIEW = """
local buffer = vim.api.nvim_win_get_buf(...)
vim.api.nvim_buf_delete(buffer, { force = true })
"""


def _requests(method: str, *arguments: object) -> Way:
    return lambda program, _: program.request(method, *arguments, timeout=30)


def _runs(*arguments: str) -> Way:
    async def run(_: RpcConnection, address: str) -> None:
        process = await asyncio.create_subprocess_exec(
            require("nvim"), "--clean", "--headless", "--server", address, *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await asyncio.wait_for(process.wait(), 30)

    return run


def _lua(code: str) -> Way:
    return _requests("nvim_exec_lua", code, [])


async def _closes_its_window(program: RpcConnection, _: str) -> None:
    window = await program.request("nvim_exec_lua", _PROPOSAL, [], timeout=30)
    await program.request("nvim_win_close", window, True, timeout=30)


async def _deletes_its_buffer(program: RpcConnection, _: str) -> None:
    window = await program.request("nvim_exec_lua", _PROPOSAL, [], timeout=30)
    await program.request("nvim_exec_lua", _DROP_REVIEW, [window], timeout=30)


ACCEPTING: dict[str, Way] = {
    "--remote-send": _runs("--remote-send", ":w<CR>"),
    "--remote-send of a mapping": _runs("--remote-send", "<Space>w"),
    "--remote-expr execute": _runs("--remote-expr", 'execute("w")'),
    "--remote-expr luaeval": _runs("--remote-expr", "luaeval('vim.cmd.write()')"),
    "--remote-expr feedkeys": _runs("--remote-expr", r'feedkeys(":w\r", "t")'),
    "nvim_input": _requests("nvim_input", ":w<CR>"),
    "nvim_input ZZ": _requests("nvim_input", "ZZ"),
    "nvim_input of the command": _requests("nvim_input", ":IsthmusDiffAccept<CR>"),
    "nvim_feedkeys t": _requests("nvim_feedkeys", ":w\r", "t", False),
    "nvim_feedkeys tx": _requests("nvim_feedkeys", ":w\r", "tx", False),
    "nvim_feedkeys n": _requests("nvim_feedkeys", "ZZ", "n", False),
    "nvim_command": _requests("nvim_command", "write"),
    "nvim_command normal": _requests("nvim_command", "normal! ZZ"),
    "nvim_command accept": _requests("nvim_command", "IsthmusDiffAccept"),
    "nvim_cmd": _requests("nvim_cmd", {"cmd": "update"}, {}),
    "nvim_exec_lua": _lua("vim.cmd.write()"),
    "nvim_exec_lua input": _lua('vim.api.nvim_input(":w<CR>")'),
    "nvim_exec_lua feedkeys": _lua(r'vim.api.nvim_feedkeys(":w\r", "t", false)'),
    "nvim_exec_lua feedkeys later": _lua(r'vim.defer_fn(function() vim.api.nvim_feedkeys(":w\r", "t", false) end, 30)'),
    "nvim_exec_lua accept": _lua("vim.cmd.IsthmusDiffAccept()"),
}
REJECTING: dict[str, Way] = {
    "--remote-send :q": _runs("--remote-send", ":q<CR>"),
    "--remote-expr bdelete": _runs("--remote-expr", 'execute("bdelete!")'),
    "nvim_input :q": _requests("nvim_input", ":q!<CR>"),
    "nvim_feedkeys :q": _requests("nvim_feedkeys", ":q\r", "t", False),
    "nvim_command quit": _requests("nvim_command", "quit"),
    "nvim_command tabclose": _requests("nvim_command", "tabclose"),
    "nvim_command reject": _requests("nvim_command", "IsthmusDiffReject"),
    "nvim_input reject": _requests("nvim_input", ":IsthmusDiffReject<CR>"),
    "nvim_win_close": _closes_its_window,
    "nvim_buf_delete": _deletes_its_buffer,
}
_NO_FFI = "lua package.loaded.ffi = nil; package.preload.ffi = function() error('not built in') end"
"""Makes Neovim like one before 0.11 or without LuaJIT, which does not say which channel sent a key."""
WAYS = ACCEPTING | REJECTING
BEGUN = ["ihello", ":set nu", "d", "v"]
"""Beginnings of something that the user has typed when the program tries."""


@asynccontextmanager
async def attached(neovim: RunningNeovim) -> AsyncGenerator[NeovimEditor]:
    """Attach the companion's editor."""
    editor = await attach(neovim.address, PATIENT_NEOVIM)
    try:
        yield editor
    finally:
        await editor.aclose()


async def _shown(neovim: RunningNeovim) -> object:
    return await neovim.lua(_PROPOSAL)


async def _messages(neovim: RunningNeovim) -> str:
    return await neovim.lua("return vim.fn.execute('messages')")


async def _was_told(neovim: RunningNeovim) -> bool:
    text = " ".join((await _messages(neovim)).split())
    return "is not accepted" in text or "is not decided" in text


async def _is_shown_again(neovim: RunningNeovim, former: object) -> bool:
    return await _shown(neovim) not in (None, former)


async def _go_to_review(neovim: RunningNeovim) -> None:
    window = await eventually_async(lambda: _shown(neovim), what="the review is shown")
    await neovim.lua("vim.api.nvim_set_current_win(...)", window)


async def _decide_by_keys(neovim: RunningNeovim, heard: Heard, keys: str) -> None:
    await neovim.type("<C-Bslash><C-n><Esc>")
    await _go_to_review(neovim)

    async def decides() -> bool:
        await neovim.type("" if heard.decisions else keys)
        return bool(heard.decisions)

    await eventually_async(decides, what="the user's keys decide")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_a_review_is_not_answered_by_a_program_and_then_by_the_user(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, way: Way
) -> None:
    await neovim.command("nnoremap <Space>w :w<CR>")
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    async with another_program(neovim) as program:
        await way(program, neovim.address)
        await eventually_async(lambda: _was_told(neovim), what="the user is told")
        await neovim.wait_in_vain()
        assert heard.decisions == []
        await eventually_async(lambda: _shown(neovim), what="the review is shown")
        await _decide_by_keys(neovim, heard, ":w<CR>")
    assert heard.decisions == [DiffAccepted("review-1", "proposed\n")]
    await view_is_closed(neovim)


@pytest.mark.parametrize("name", WAYS)
async def test_a_program_does_not_answer_in_the_middle_of_what_the_user_types(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, name: str
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    # A view that a program closes comes back later each time.
    for typed in BEGUN if name in ACCEPTING else BEGUN[:2]:
        await _go_to_review(neovim)
        await neovim.type(typed)
        async with another_program(neovim) as program:
            await WAYS[name](program, neovim.address)
            await neovim.mode()
            neovim.connection.notify("nvim_input", "<Esc>")  # in case that Neovim waits for the end of a command
            await neovim.wait_in_vain()
            assert heard.decisions == [], typed
        await neovim.type("<C-Bslash><C-n><Esc>")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_a_neovim_that_cannot_tell_senders_apart_trusts_no_key_near_a_program(workspace: Path, way: Way) -> None:
    async with (
        running_neovim(workspace, "--cmd", _NO_FFI) as neovim,
        attached(neovim) as editor,
        hearing(editor) as heard,
    ):
        await neovim.command("nnoremap <Space>w :w<CR>")
        await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
        async with another_program(neovim) as program:
            await way(program, neovim.address)
            await eventually_async(lambda: _was_told(neovim), what="the user is told")
            await neovim.wait_in_vain()
            await _go_to_review(neovim)
            await neovim.type(":w<CR>")
            assert heard.decisions == []
            assert "isthmus ide" in await _messages(neovim)
        await _decide_by_keys(neovim, heard, ":w<CR>")
        assert heard.decisions == [DiffAccepted("review-1", "proposed\n")]


async def test_the_text_of_a_view_that_a_program_closed_is_kept(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type("ihello <Esc>")
    async with another_program(neovim) as program:
        for close in (_deletes_its_buffer, _closes_its_window):
            former = await _shown(neovim)
            await close(program, neovim.address)
            await eventually_async(lambda former=former: _is_shown_again(neovim, former), what="it is shown again")
        await _decide_by_keys(neovim, heard, ":w<CR>")
    assert heard.decisions == [DiffAccepted("review-1", "hello proposed\n")]
    await view_is_closed(neovim)


@pytest.mark.parametrize("keys", [":q<CR>", "<C-w>c", ":tabclose<CR>", ":bd<CR>"])
async def test_the_user_rejects_while_a_program_is_connected(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, keys: str
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    async with another_program(neovim):
        await neovim.type(keys)
        assert await heard.decision() == DiffRejected("review-1")
    await view_is_closed(neovim)


@pytest.mark.parametrize(
    "keys",
    [":w<CR>", "ZZ", "<Space>w", "<Space>u", "<Space>l", "<Space>n", "<Space>f", "<Space>m", "@q", ":normal ZZ<CR>"],
)
async def test_commands_and_mappings_of_the_user_accept_while_a_program_is_connected(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, keys: str
) -> None:
    await neovim.command(
        "nnoremap <Space>w :w<CR>",
        "nnoremap <Space>u <Cmd>update<CR>",
        "lua vim.keymap.set('n', '<Space>l', function() vim.cmd.write() end)",
        "nnoremap <Space>n <Cmd>normal! ZZ<CR>",
        r"lua vim.keymap.set('n', '<Space>f', function() vim.api.nvim_feedkeys(':w\r', 't', false) end)",
        r"lua vim.keymap.set('n', '<Space>m', function() vim.api.nvim_feedkeys(':w\r', 'nt', false) end)",
        r"""let @q = ":w\<CR>" """,
    )
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    async with another_program(neovim):
        await neovim.type(keys)
        assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


async def test_a_plugin_that_reacts_later_to_a_key_of_the_user_accepts(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await neovim.lua(
        r"""
        vim.keymap.set("n", "<Space>f", function()
          vim.defer_fn(function() vim.api.nvim_feedkeys(":w\r", "t", false) end, 30)
        end)
        vim.keymap.set("n", "<Space>i", function()
          vim.defer_fn(function() vim.api.nvim_input(":w<CR>") end, 30)
        end)
        """
    )
    for number, key in enumerate("fi"):
        await editor.open_diff(review(make_file(workspace, f"{key}.py"), "proposed\n", number))
        await neovim.type(f"<Space>{key}")
        await eventually_async(lambda number=number: len(heard.decisions) == number + 1, what="a decision")


async def test_the_keys_of_a_second_screen_are_the_users(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    async with another_program(neovim) as screen:
        await screen.request("nvim_ui_attach", *SCREEN, {"ext_linegrid": True}, timeout=30)
        await screen.request("nvim_input", ":w<CR>", timeout=30)
        assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


@pytest.mark.parametrize(
    "way",
    [
        _runs("--remote-send", "y"),
        _requests("nvim_input", "y"),
        _requests("nvim_input", "n"),
        _requests("nvim_input", "<Esc>"),
        _requests("nvim_feedkeys", "y", "t", False),
        _requests("nvim_feedkeys", "y", "m", False),
        _requests("nvim_command", "normal y"),
        _requests("nvim_command", "IsthmusAllow"),
        _requests("nvim_command", "IsthmusRefuse"),
        _requests("nvim_input", ":IsthmusAllow<CR>"),
        _requests("nvim_command", "quit"),
        _requests("nvim_command", "bwipeout!"),
        _runs("--remote-expr", 'execute("IsthmusAllow")'),
    ],
)
async def test_a_question_is_not_answered_by_a_program_and_then_by_the_user(
    neovim: RunningNeovim, editor: NeovimEditor, way: Way
) -> None:
    asking = asyncio.create_task(editor.confirm("Claude Code wants to run code", "print(1)"))

    async def is_asked() -> bool:
        return "Claude Code wants to run code" in await neovim.lines()

    await eventually_async(is_asked, what="the question")
    async with another_program(neovim) as program:
        await way(program, neovim.address)
        await neovim.wait_in_vain()
        assert not asking.done()
        await eventually_async(is_asked, what="the question is still there")
        await neovim.type("y")
        assert await asyncio.wait_for(asking, 30) is True
