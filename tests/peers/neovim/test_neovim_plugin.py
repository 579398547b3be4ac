"""The optional plugin: the companion runs as long as its Neovim, and the terminals inside it find the companion."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.claude_cli import claude_cli
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.neovim import PLUGIN, RunningNeovim, neovim_with_plugin, running_neovim, vim_literal
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


def _discovered(isolated_folders: IsolatedFolders, neovim: RunningNeovim) -> list[Path]:
    return list((isolated_folders.temporary / "gemini" / "ide").glob(f"gemini-ide-server-{neovim.process.pid}-*.json"))


async def _companion(isolated_folders: IsolatedFolders, neovim: RunningNeovim) -> dict[str, Any]:
    files = await eventually_async(lambda: _discovered(isolated_folders, neovim), what="the companion's discovery file")
    return json.loads(files[0].read_text(encoding="utf-8"))


async def test_the_companion_starts_with_neovim_and_ends_with_it(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with neovim_with_plugin(workspace) as neovim:
        found = await _companion(isolated_folders, neovim)
        assert found["workspacePath"] == str(workspace)
        assert found["ideInfo"]["name"] == "neovim"
        await neovim.quit()
        await eventually_async(lambda: not _discovered(isolated_folders, neovim), what="the discovery file is gone")


async def test_a_terminal_inside_neovim_has_the_variables_of_its_companion(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with neovim_with_plugin(workspace) as neovim:
        found = await _companion(isolated_folders, neovim)

        async def variables() -> dict[str, str]:
            printed: str = await neovim.lua("return vim.fn.system('env')")
            pairs = (line.partition("=") for line in printed.splitlines())
            shown = {name: text for name, _, text in pairs}
            return shown if "GEMINI_CLI_IDE_SERVER_PORT" in shown else {}

        shown = await eventually_async(variables, what="the variables")
        assert shown["GEMINI_CLI_IDE_SERVER_PORT"] == str(found["port"])
        assert shown["GEMINI_CLI_IDE_WORKSPACE_PATH"] == str(workspace)
        assert shown["GEMINI_CLI_IDE_AUTH_TOKEN"] == found["authToken"]
        assert "127.0.0.1" in shown["NO_PROXY"]
        await neovim.command("IsthmusStop")

        async def are_gone() -> bool:
            return not await variables()

        await eventually_async(are_gone, what="the variables of a companion that ended are gone")


async def test_a_companion_that_crashes_is_started_again_on_the_same_port(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with neovim_with_plugin(workspace) as neovim:
        found = await _companion(isolated_folders, neovim)
        (crashed,) = await neovim.jobs()
        os.kill(crashed, signal.SIGKILL)

        async def is_back() -> bool:
            return bool(jobs := await neovim.jobs()) and jobs != [crashed]

        await eventually_async(is_back, what="another companion runs")

        async def is_found() -> bool:
            files = _discovered(isolated_folders, neovim)
            return files != [] and await neovim.lua("return next(_G.isthmus_sessions or {}) ~= nil")

        await eventually_async(is_found, what="it is found again")
        now = await _companion(isolated_folders, neovim)
        assert (now["port"], now["authToken"]) == (found["port"], found["authToken"])
        assert "starting it again" in await neovim.lua("return vim.fn.execute('messages')")


async def test_a_start_while_the_companion_still_ends_counts(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with neovim_with_plugin(workspace) as neovim:
        await _companion(isolated_folders, neovim)
        (former,) = await neovim.jobs()
        await neovim.lua("vim.cmd('IsthmusStop') vim.cmd('IsthmusStart')")

        async def is_another() -> bool:
            return (
                former not in (jobs := await neovim.jobs())
                and jobs != []
                and _discovered(isolated_folders, neovim) != []
            )

        await eventually_async(is_another, what="another companion runs")


_NOTE_DELAYS = """
local defer = vim.defer_fn
_G.delays = {}
vim.defer_fn = function(act, milliseconds)
  if not debug.getinfo(2, "S").source:find("lua/isthmus.lua", 1, true) then
    return defer(act, milliseconds)
  end
  _G.delays[#_G.delays + 1] = milliseconds
  if _G.without_delay then
    vim.schedule(act)
  else
    _G.start_again = act
  end
end
"""
"""Replacement of the plugin's delays: restarts are recorded, and wait until the test runs them."""
_WITHOUT_DELAY = "_G.without_delay = true"


async def test_a_companion_that_crashes_at_once_is_started_later_and_later_and_given_up(workspace: Path) -> None:
    async with neovim_with_plugin(workspace, autostart=False, program=["sh", "-c", "exit 3"]) as neovim:
        await neovim.lua(_NOTE_DELAYS + _WITHOUT_DELAY)
        await neovim.command("IsthmusStart")

        async def is_given_up() -> bool:
            return ":IsthmusStart starts it again" in await neovim.lua("return vim.fn.execute('messages')")

        await eventually_async(is_given_up, what="it is given up")
        assert await neovim.lua("return _G.delays") == [100, 1000, 2000, 3000, 4000]


async def test_a_companion_that_ran_for_a_while_is_started_again_at_once_each_time(workspace: Path) -> None:
    async with neovim_with_plugin(workspace, autostart=False, program=["sh", "-c", "exit 3"]) as neovim:
        await neovim.lua(_NOTE_DELAYS + _WITHOUT_DELAY)
        await neovim.lua("local now = 0; vim.loop.now = function() now = now + 6000 return now end")
        await neovim.command("IsthmusStart")
        await eventually_async(lambda: neovim.lua("return #_G.delays >= 12"), what="twelve restarts")
        await neovim.command("IsthmusStop")
        assert set(await neovim.lua("return _G.delays")) == {100}


async def test_a_stop_before_a_crashed_companion_is_started_again_counts(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with neovim_with_plugin(workspace) as neovim:
        await _companion(isolated_folders, neovim)
        await neovim.lua(_NOTE_DELAYS)
        (crashed,) = await neovim.jobs()
        os.kill(crashed, signal.SIGKILL)
        await eventually_async(lambda: neovim.lua("return _G.start_again ~= nil"), what="it is to be started again")
        await neovim.command("IsthmusStop")
        await neovim.lua("_G.start_again()")
        assert not await neovim.lua("return require('isthmus').is_running()")


async def test_stop_and_start_by_command(workspace: Path, isolated_folders: IsolatedFolders) -> None:
    async with neovim_with_plugin(workspace, autostart=False) as neovim:
        assert not _discovered(isolated_folders, neovim)
        await neovim.command("IsthmusMention")
        assert ":IsthmusStart starts one" in await neovim.lua("return vim.fn.execute('messages')")
        await neovim.command("IsthmusStart")
        await _companion(isolated_folders, neovim)
        await neovim.command("IsthmusStop")
        await eventually_async(lambda: not _discovered(isolated_folders, neovim), what="the discovery file is gone")
        await neovim.command("IsthmusDiffAccept")

        async def says_so() -> bool:
            return "no companion is attached" in await neovim.lua("return vim.fn.execute('messages')")

        await eventually_async(says_so, what="the command says that nobody is attached")


async def test_a_program_that_is_not_there_is_said_once(workspace: Path) -> None:
    async with neovim_with_plugin(workspace, program="no-such-isthmus") as neovim:

        async def says_so() -> bool:
            return 'there is no program "no-such-isthmus"' in await neovim.lua("return vim.fn.execute('messages')")

        await eventually_async(says_so, what="the message")


async def test_more_arguments_reach_the_companion_and_what_it_complains_of_is_shown(workspace: Path) -> None:
    async with neovim_with_plugin(workspace, arguments=["--no-such-option"]) as neovim:

        async def says_so() -> bool:
            return "no-such-option" in await neovim.lua("return vim.fn.execute('messages')")

        await eventually_async(says_so, what="the message")


async def test_in_a_neovim_that_is_too_old_it_says_so_in_one_line_and_does_nothing(workspace: Path) -> None:
    too_old = ("--cmd", "lua vim.fn.has = function() return 0 end")
    arguments = (
        "--cmd",
        f"set runtimepath^={PLUGIN}",
        "--cmd",
        f"let g:isthmus = {vim_literal({'program': list(ISTHMUS)})}",
    )
    async with running_neovim(workspace, *too_old, *arguments) as neovim:
        found = await neovim.lua("local v = vim.version() return v.major .. '.' .. v.minor .. '.' .. v.patch")
        said = await neovim.lua("return vim.api.nvim_exec2('messages', { output = true }).output")
        assert said == f"Isthmus: Neovim {found} is too old: Isthmus needs Neovim 0.8 or newer"
        assert await neovim.lua("return vim.fn.exists(':IsthmusStart')") == 0


async def test_the_log_shows_an_agent_that_attaches_and_the_status_line_names_it(workspace: Path) -> None:
    async with neovim_with_plugin(workspace) as neovim:
        await eventually_async(lambda: neovim.lua("return _G.isthmus_environment ~= nil"), what="the companion")
        await neovim.command("IsthmusLog")
        async with claude_cli(workspace) as cli:

            async def is_shown() -> bool:
                return any('Claude Code <- {"method"' in line for line in await neovim.lines())

            await eventually_async(is_shown, what="a message of the agent")
            assert cli.lock.token is not None
            assert cli.lock.token not in "".join(await neovim.lines())
            assert await neovim.lua("return require('isthmus').agents()") == ["Claude Code"]
        await neovim.command("close")
        assert len(await neovim.jobs()) == 1, "the companion alone"
