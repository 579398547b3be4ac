"""Terminals of agents inside Neovim, with a program that notes its variables and what it is sent."""

import shlex
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.editing import make_file
from support.isolation import IsolatedFolders
from support.neovim import RunningNeovim, neovim_with_plugin
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_AGENT = r"""
stty raw -echo
env > variables
printf '\033[?1049;20'
printf '04h'
cat > received
"""
"""Program that takes pastes, as agents do. Its control sequence comes in two parts."""
_WINDOWS = "return vim.tbl_map(function(w) return vim.api.nvim_win_get_width(w) end, vim.api.nvim_tabpage_list_wins(0))"


def _agent(folder: Path, name: str = "agent", script: str = _AGENT) -> list[str]:
    program = folder / name
    program.write_text(f"#!/bin/sh\ncd {shlex.quote(str(folder))}\n{script}", encoding="utf-8")
    program.chmod(0o700)
    return [str(program)]


@asynccontextmanager
async def _neovim(folder: Path, command: Sequence[str], **settings: Any) -> AsyncGenerator[RunningNeovim]:
    """Start Neovim as if a companion had set its variables, for which terminals wait."""
    terminal = {"command": command, **settings.pop("terminal", {})}
    async with neovim_with_plugin(folder, autostart=False, terminal=terminal, **settings) as neovim:
        await neovim.lua("_G.isthmus_environment = { former = {} }")
        yield neovim


async def _received(folder: Path, expected: bytes) -> None:
    async def came() -> bool:
        return (folder / "received").read_bytes() == expected if (folder / "received").exists() else False

    try:
        await eventually_async(came, what="the text")
    except AssertionError:
        assert (folder / "received").read_bytes() == expected


async def _said(neovim: RunningNeovim, text: str) -> None:
    async def says_so() -> bool:
        return text in await neovim.lua("return vim.fn.execute('messages')")

    await eventually_async(says_so, what=f"the message {text!r}")


async def test_an_agent_in_a_terminal_has_the_variables_of_this_neovim(
    workspace: Path, tmp_path: Path, isolated_folders: IsolatedFolders
) -> None:
    async with neovim_with_plugin(workspace, terminal={"command": _agent(tmp_path)}) as neovim:
        await neovim.command("IsthmusTerminal", "IsthmusTerminal")  # at once, before the companion is ready
        await neovim.type("itoo early<Esc>")
        await eventually_async(lambda: (tmp_path / "received").exists(), what="the agent has started")
        files = (isolated_folders.temporary / "gemini" / "ide").glob(f"gemini-ide-server-{neovim.process.pid}-*.json")
        (port,) = [path.stem.rpartition("-")[2] for path in files]
        variables = (tmp_path / "variables").read_text(encoding="utf-8").splitlines()
        assert f"GEMINI_CLI_IDE_SERVER_PORT={port}" in variables
        assert [
            line for line in variables if line.startswith(("NVIM=", "NVIM_LISTEN"))
        ] == []  # with which it could press the user's keys


async def test_without_a_companion_the_agent_starts_and_the_user_is_told(workspace: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "program": ["sh", "-c", "exit 3"],
        "autostart": False,
        "terminal": {"command": _agent(tmp_path)},
    }
    async with neovim_with_plugin(workspace, **settings) as neovim:
        await neovim.command("IsthmusTerminal")
        await eventually_async(lambda: (tmp_path / "received").exists(), what="the agent has started")
        await _said(neovim, "no companion is ready, so ")


async def test_the_terminal_is_shown_hidden_focused_and_left(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, _agent(tmp_path), terminal={"size": 30}) as neovim:
        await neovim.command("IsthmusToggle")
        assert await neovim.lua(_WINDOWS) == [49, 30]
        assert await neovim.lua("return vim.bo.buftype") == "terminal"
        await neovim.command("IsthmusFocus")
        assert await neovim.lua("return vim.bo.buftype") == ""
        await neovim.command("IsthmusToggle")
        assert await neovim.lua(_WINDOWS) == [80]
        before = await neovim.jobs()
        await neovim.command("IsthmusFocus")
        assert await neovim.lua("return vim.bo.buftype") == "terminal"
        assert await neovim.jobs() == before != []


async def test_each_command_has_a_terminal_in_the_same_window(workspace: Path, tmp_path: Path) -> None:
    other = _agent(tmp_path, "other", "exit 3")
    async with _neovim(workspace, _agent(tmp_path), terminal={"position": "bottom", "size": 0.5}) as neovim:
        await neovim.command("IsthmusTerminal")
        first = await neovim.lua("return vim.api.nvim_get_current_buf()")
        await neovim.command(f"IsthmusTerminal {other[0]} --option")
        await _said(neovim, f"{other[0]} --option ended with code 3")
        assert await neovim.lua("return vim.fn.winnr('$')") == 2
        await neovim.command("IsthmusTerminal")
        assert await neovim.lua("return vim.api.nvim_get_current_buf()") == first
        await neovim.lua("vim.fn.jobstop(vim.b.terminal_job_id)")
        await neovim.command("IsthmusTerminal no-such-agent")
        await _said(neovim, 'there is no program "no-such-agent"')


async def test_a_prompt_is_pasted_and_entered_only_if_asked(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, _agent(tmp_path)) as neovim:
        await neovim.command("IsthmusPrompt too early")
        await _said(neovim, ":IsthmusTerminal starts one")
        await neovim.command("IsthmusTerminal", "IsthmusPrompt explain | this é")  # before the agent takes pastes
        pasted = "\x1b[200~explain | this é\x1b[201~".encode()
        await _received(tmp_path, pasted)
        await neovim.command("IsthmusPrompt! go", "IsthmusPrompt next")
        await _received(tmp_path, pasted + b"\x1b[200~go\x1b[201~\r\x1b[200~next\x1b[201~")


async def test_no_text_ends_its_paste_or_presses_keys(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, _agent(tmp_path)) as neovim:
        await neovim.command("IsthmusTerminal")
        sent = "one\r\n\ttwo\x1b[201~\rrm\x03\x7f\x9b201~\x00"
        await neovim.lua("require('isthmus.terminal').send(...)", sent)
        await _received(tmp_path, b"\x1b[200~one\n\ttwo[201~\nrm201~\x1b[201~")


async def test_an_agent_that_takes_no_pastes_is_sent_nothing(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, _agent(tmp_path, script="stty raw -echo; cat > received")) as neovim:
        await neovim.lua("local defer = vim.defer_fn; vim.defer_fn = function(act) return defer(act, 200) end")
        await neovim.command("IsthmusTerminal", "IsthmusPrompt one")
        await _said(neovim, "took no text for 30 s")
        await eventually_async(lambda: (tmp_path / "received").exists(), what="the agent has started")
        assert (tmp_path / "received").read_bytes() == b""


@pytest.mark.parametrize(
    ("agent", "file", "keys", "sent"),
    [
        ("claude", "a.py", ":IsthmusSend<CR>", "@a.py "),
        ("claude", "a.py", "V:IsthmusSend<CR>", "@a.py#L1-1 "),
        ("claude", "a b.py", ":2,3IsthmusSend<CR>", '@"a b.py#L2-3" '),
        ("run claude", "a.py", ":2,3IsthmusSend<CR>", "@a.py#L2-3 "),
        ("gemini", "a b.py", ":2,3IsthmusSend<CR>", "@a\\ b.py lines 2-3 "),
        ("gemini", "a.py", ":2,3IsthmusSend text<CR>", "a.py, from line 2:\ntwo\nthree\n"),
        ("gemini", "a.py", "inew <Esc>:IsthmusSend<CR>", "a.py, from line 1:\nnew one\ntwo\nthree\n"),
    ],
)
async def test_lines_are_sent_as_the_agent_reads_them(
    workspace: Path, tmp_path: Path, agent: str, file: str, keys: str, sent: str
) -> None:
    name, *arguments = agent.split()
    async with _neovim(workspace, [*_agent(tmp_path, name), *arguments]) as neovim:
        await neovim.lua("vim.cmd.edit(vim.fn.fnameescape(...))", make_file(workspace, file))
        await neovim.command("IsthmusTerminal", "IsthmusFocus")
        await neovim.type(keys)
        await _received(tmp_path, f"\x1b[200~{sent}\x1b[201~".encode())


async def test_keys_are_mapped_under_the_prefix_alone(workspace: Path, tmp_path: Path) -> None:
    mapped = "return vim.tbl_map(function(m) return m.lhs .. ' ' .. (m.desc or '') end, vim.api.nvim_get_keymap(...))"
    async with _neovim(workspace, _agent(tmp_path)) as neovim:
        assert not [text for text in await neovim.lua(mapped, "n") if "Isthmus" in text]
        await neovim.lua("require('isthmus').setup({ keys = '\\\\a' })")
        assert "\\at Isthmus: Show or hide the agent's terminal" in await neovim.lua(mapped, "n")
        assert "\\as Isthmus: Send these lines to the agent's terminal" in await neovim.lua(mapped, "x")
        await neovim.type("\\at")
        assert await neovim.lua("return vim.bo.buftype") == "terminal"
