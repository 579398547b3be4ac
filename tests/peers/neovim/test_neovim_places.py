"""Where agents run and what their terminals do in Neovim: floating windows, other programs, folders, models, sizes."""

import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import attach
from isthmus.ide.editor import DiffAccepted
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import (
    PLUGIN,
    RunningNeovim,
    hearing,
    neovim_with_plugin,
    running_neovim,
    view_is_closed,
    vim_literal,
)
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_AGENT = r"""
stty raw -echo 2>/dev/null
pwd > folder
env > variables
echo "$@" > arguments
printf '\033[?2004h'
cat > received
"""
_NOTE_SENT = """
vim.api.nvim_create_autocmd("User", { pattern = "IsthmusSent", callback = function(event) _G.sent = event.data end })
"""
_WIDTH = """
for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  if vim.b[vim.api.nvim_win_get_buf(window)].isthmus_agent then return vim.api.nvim_win_get_width(window) end
end
return 0
"""


def _agent(folder: Path, name: str = "claude", script: str = _AGENT) -> str:
    program = folder / name
    notes = f"notes={shlex.quote(str(folder))}\n" + script.replace("> ", '> "$notes"/')
    program.write_text(f"#!/bin/sh\n{notes}", encoding="utf-8")
    program.chmod(0o700)
    return str(program)


@asynccontextmanager
async def _neovim(folder: Path, terminal: Mapping[str, Any], *, code: str = "") -> AsyncGenerator[RunningNeovim]:
    async with neovim_with_plugin(folder, autostart=False, terminal=terminal) as neovim:
        await neovim.lua("_G.isthmus_environment = { former = {} }")
        if code:
            await neovim.lua(f"require('isthmus').setup({code})")
        yield neovim


async def _noted(folder: Path, name: str) -> str:
    await eventually_async(lambda: (folder / name).exists() and (folder / name).read_text(), what=f"the agent's {name}")
    return (folder / name).read_text(encoding="utf-8")


async def _said(neovim: RunningNeovim, text: str) -> None:
    await eventually_async(lambda: neovim.has_message(text), what=text)


async def test_a_floating_terminal_is_shown_hidden_and_shown_again(workspace: Path, tmp_path: Path) -> None:
    terminal = {"command": [_agent(tmp_path)], "position": "float", "float": {"width": 0.5, "height": 10}}
    async with _neovim(workspace, terminal) as neovim:
        await neovim.command("IsthmusToggle")
        shown = "local c = vim.api.nvim_win_get_config(0) return { c.relative, c.width, c.height, vim.bo.buftype }"
        assert await neovim.lua(shown) == ["editor", 40, 10, "terminal"]
        jobs = await neovim.jobs()
        await neovim.command("IsthmusToggle")
        assert await neovim.lua("return vim.fn.winnr('$')") == 1
        await neovim.command("IsthmusToggle")
        assert await neovim.lua(shown) == ["editor", 40, 10, "terminal"]
        assert await neovim.jobs() == jobs != []


async def test_a_function_of_the_user_opens_the_window(workspace: Path, tmp_path: Path) -> None:
    code = """{ terminal = { position = function(buffer)
      vim.cmd("tabnew")
      vim.api.nvim_win_set_buf(0, buffer)
      return vim.api.nvim_get_current_win()
    end } }"""
    async with _neovim(workspace, {"command": [_agent(tmp_path)]}, code=code) as neovim:
        await neovim.command("IsthmusTerminal")
        assert await neovim.tabs() == 2
        assert await neovim.lua("return vim.b.isthmus_agent ~= nil")


@pytest.mark.parametrize(
    ("external", "code"),
    [
        ("{program} --title=%s.x --run %s", ""),
        (["{program}", "--run"], ""),
        (None, "function(line, folder) return vim.list_extend({{ '{program}', folder, '--run' }}, line) end"),
    ],
)
async def test_an_agent_runs_in_a_terminal_program_of_the_user(
    workspace: Path, tmp_path: Path, external: Any, code: str
) -> None:
    opener = 'echo "$@" > opened\nwhile [ "$1" != --run ]; do shift; done\nshift\nexec "$@"'
    program = _agent(tmp_path, "emulator", opener)
    filled = external
    if isinstance(external, str):
        filled = external.format(program=program)
    elif external is not None:
        filled = [part.format(program=program) for part in external]
    terminal = {"command": [_agent(tmp_path, "an agent"), "--option"], "position": "external"}
    settings = terminal | ({"external": filled} if filled is not None else {})
    lua = "{ terminal = { external = " + code.format(program=program) + " } }" if code else ""
    async with _neovim(workspace, settings, code=lua) as neovim:
        await neovim.command("IsthmusTerminal")
        assert await _noted(tmp_path, "folder") == f"{workspace}\n"
        assert (await _noted(tmp_path, "opened")).strip()
        assert await _noted(tmp_path, "arguments") == "--option\n"
        assert "\nNVIM=" not in f"\n{await _noted(tmp_path, 'variables')}"
        assert await neovim.lua("return vim.fn.winnr('$')") == 1
        await neovim.command("IsthmusTerminal")
        await _said(neovim, "runs already, in a terminal of its own")
        for pid in await neovim.jobs():
            await neovim.lua("(vim.uv or vim.loop).kill(..., 'sigkill')", pid)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"position": "external"}, "set terminal.external to the command of your terminal program"),
        ({"position": "external", "external": "alacritty"}, "terminal.external needs %s"),
        ({"position": "external", "external": ["no-such-emulator"]}, 'there is no program "no-such-emulator"'),
        ({"position": "none"}, 'terminals are off (terminal.position is "none")'),
    ],
)
async def test_where_no_terminal_can_be_opened_it_is_said_why(
    workspace: Path, tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)], **settings}) as neovim:
        await neovim.command("IsthmusTerminal")
        await _said(neovim, said)
        assert await neovim.lua("return vim.fn.winnr('$')") == 1


@pytest.mark.parametrize(
    ("cwd", "code", "expected"),
    [
        ("git", "", "repository"),
        (None, "{ terminal = { cwd = function(about) return about.folder end } }", "repository/inner"),
        ("{workspace}/other", "", "other"),
        ("{workspace}/none", "", ""),
        (None, "", ""),
    ],
)
async def test_agents_start_in_the_folder_of_the_setting(
    workspace: Path, tmp_path: Path, cwd: str | None, code: str, expected: str
) -> None:
    for name in ("repository/.git", "repository/inner", "other"):
        (workspace / name).mkdir(parents=True)
    terminal = {"command": [_agent(tmp_path)]} | ({"cwd": cwd.format(workspace=workspace)} if cwd else {})
    async with _neovim(workspace, terminal, code=code) as neovim:
        await neovim.command(f"edit {make_file(workspace / 'repository' / 'inner', 'a.py')}", "IsthmusTerminal")
        assert (await _noted(tmp_path, "folder")).rstrip() == f"{workspace}/{expected}".rstrip("/")


async def test_an_agent_gets_the_variables_of_the_setting(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)], "env": {"AN_OPTION": "a value"}}) as neovim:
        await neovim.command("IsthmusTerminal")
        assert "\nAN_OPTION=a value\n" in await _noted(tmp_path, "variables")


@pytest.mark.parametrize("closes", [True, False])
async def test_the_window_of_an_agent_that_ended_well_is_closed_or_kept_as_set(
    workspace: Path, tmp_path: Path, closes: bool
) -> None:
    command = [_agent(tmp_path, script="echo all is done")]
    async with _neovim(workspace, {"command": command, "auto_close": closes}) as neovim:
        await neovim.command("IsthmusTerminal")
        if not closes:
            await _said(neovim, "ended with code 0")
            assert any("all is done" in line for line in await neovim.lines())

        async def windows() -> bool:
            return await neovim.lua("return vim.fn.winnr('$')") == (1 if closes else 2)

        await eventually_async(windows, what="the windows")


async def test_a_model_is_chosen_from_a_list_or_named(workspace: Path, tmp_path: Path) -> None:
    models = ["small one", "large"]
    async with _neovim(workspace, {"command": [_agent(tmp_path), "--plain"], "models": models}) as neovim:
        await neovim.lua("vim.ui.select = function(items, _, choose) choose(items[1]) end")
        await neovim.command("IsthmusModel")
        assert await _noted(tmp_path, "arguments") == "--plain --model small one\n"
        (tmp_path / "arguments").unlink()
        await neovim.command("IsthmusModel large")
        assert await _noted(tmp_path, "arguments") == "--plain --model large\n"
        assert await neovim.lua("return vim.fn.getcompletion('IsthmusModel ', 'cmdline')") == models


async def test_a_key_begins_a_new_line_in_the_prompt(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)]}) as neovim:
        await neovim.command("IsthmusTerminal")
        await _noted(tmp_path, "variables")
        await neovim.type("one<S-CR>two<CR>")
        received = tmp_path / "received"
        await eventually_async(
            lambda: received.exists() and received.read_bytes() == b"one\x1b\rtwo\r", what="the keys"
        )


async def test_a_large_paste_of_the_user_arrives_as_one(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)]}) as neovim:
        await neovim.command("IsthmusTerminal")
        await _noted(tmp_path, "variables")
        for phase, part in ((1, "one\ntw"), (2, "o\nthr"), (3, "ee")):
            await neovim.connection.request("nvim_paste", part, False, phase, timeout=30)
        received = tmp_path / "received"

        def arrived() -> bool:
            assert received.read_bytes().replace(b"\r", b"\n") == b"\x1b[200~one\ntwo\nthree\x1b[201~"
            return True

        await eventually_async(arrived)
        await neovim.command("enew")
        for phase, part in ((1, "one\ntw"), (3, "o")):
            await neovim.connection.request("nvim_paste", part, False, phase, timeout=30)
        assert await neovim.lines() == ["one", "two"]


@pytest.mark.parametrize("focuses", [True, False])
async def test_after_sending_the_terminal_gets_the_focus_if_the_setting_says_so(
    workspace: Path, tmp_path: Path, focuses: bool
) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)], "focus_after_send": focuses}) as neovim:
        await neovim.lua(_NOTE_SENT)
        path = make_file(workspace, "a.py")
        await neovim.command(f"edit {path}", "IsthmusTerminal", "IsthmusFocus", "2,3IsthmusSend")
        assert await neovim.lua("return vim.bo.buftype == 'terminal'") is focuses
        assert await neovim.lua("return _G.sent") == {"path": path, "first": 2, "last": 3}


async def test_a_terminal_without_auto_insert_stays_in_normal_mode(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)], "auto_insert": False}) as neovim:
        await neovim.command("IsthmusTerminal", "IsthmusFocus", "IsthmusFocus")
        assert await neovim.lua("return vim.bo.buftype") == "terminal"
        assert await neovim.mode() == "nt"


@pytest.mark.parametrize("layout", ["tab", "vertical", "unified"])
async def test_a_terminal_keeps_the_focus_and_stays_beside_the_review(
    workspace: Path, tmp_path: Path, layout: str
) -> None:
    reviews = {"pause": 0, "reading": 0, "layout": layout, "stay_in_terminal": True}
    arguments = ("--cmd", f"set runtimepath^={PLUGIN}", "--cmd", f"let g:isthmus_review = {vim_literal(reviews)}")
    settings = {"autostart": False, "terminal": {"command": [_agent(tmp_path)], "size": 30}}
    configured = ("--cmd", f"let g:isthmus = {vim_literal(settings)}")
    async with running_neovim(workspace, *arguments, *configured, reviews=()) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with hearing(editor) as heard:
            await neovim.lua("_G.isthmus_environment = { former = {} }")
            await neovim.command("IsthmusTerminal")
            await _noted(tmp_path, "variables")
            await neovim.type("i")
            for number, name in enumerate(("a.py", "b.py"), 1):
                asked = replace(review(make_file(workspace, name), "proposed\n", number), opened=float(number))
                await editor.open_diff(asked)
                assert await neovim.lua("return vim.b.isthmus_agent ~= nil")
                assert await neovim.mode() == "t"
            await neovim.type("still here")
            received = tmp_path / "received"
            await eventually_async(lambda: received.read_bytes().endswith(b"still here"), what="the keys")
            names = "return vim.tbl_map(function(w) return vim.fn.fnamemodify(vim.api.nvim_buf_get_name("
            names += "vim.api.nvim_win_get_buf(w)), ':t') end, vim.api.nvim_tabpage_list_wins(0))"
            assert "a.py (proposed)" in await neovim.lua(names)
            assert "b.py (proposed)" not in await neovim.lua(names)
            assert heard.decisions == []
            await neovim.type("<C-\\><C-n>")
            await neovim.enter("IsthmusDiffAcceptAll")
            await eventually_async(lambda: len(heard.decisions) == 2, what="the decisions")
            assert heard.decisions[0] == DiffAccepted("review-1", "proposed\n")
            await view_is_closed(neovim)
            assert await neovim.lua("return vim.b.isthmus_agent ~= nil")
        await editor.aclose()


async def test_a_terminal_is_narrower_while_a_review_is_open(workspace: Path, tmp_path: Path) -> None:
    terminal = {"command": [_agent(tmp_path)], "size": 30, "size_in_review": 12}
    async with _neovim(workspace, terminal) as neovim:
        await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0, layout = 'vertical' }")
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        await neovim.command("IsthmusTerminal")
        await neovim.type("<C-\\><C-n>")
        await neovim.command("IsthmusFocus")

        async def width_is(cells: int) -> None:
            async def is_so() -> bool:
                assert await neovim.lua(_WIDTH) == cells
                return True

            await eventually_async(is_so)

        await width_is(30)
        await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
        await width_is(12)
        await editor.close_diff("review-1")
        await width_is(30)
        await editor.aclose()


async def test_the_state_is_told_by_a_command_and_by_checkhealth(workspace: Path, tmp_path: Path) -> None:
    async with _neovim(workspace, {"command": [_agent(tmp_path)]}) as neovim:
        await neovim.command("IsthmusStatus")
        await _said(neovim, "no companion runs; :IsthmusStart starts one; attached: none; reviews that wait: 0")
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        editor.agents_changed({"1": "Claude Code"})
        await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
        await neovim.command("IsthmusStatus")
        await _said(neovim, "agents can find this Neovim; attached: Claude Code; reviews that wait: 1")
        await neovim.command("checkhealth isthmus")
        shown = "\n".join(await neovim.lines())
        assert "a companion is attached: agents can find this Neovim" in shown
        assert "attached agents: Claude Code" in shown
        assert f":IsthmusTerminal starts {tmp_path}/claude" in shown
        assert "ERROR" not in shown
        await editor.aclose()


async def test_a_picker_of_the_user_mentions_by_a_function(workspace: Path) -> None:
    async with _neovim(workspace, {}) as neovim:
        path = make_file(workspace, "a.py")
        assert await neovim.lua("return require('isthmus').mention(...)", path) is False
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with hearing(editor) as heard:
            assert await neovim.lua("return require('isthmus').mention('a.py', 2, 3)") is True
            await eventually_async(lambda: str(heard.events).count("start_line=1, end_line=2"), what="the mention")
        await editor.aclose()
