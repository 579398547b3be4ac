"""Reviews beside other things of Neovim: labels of tab pages, saved sessions, ``nvim -M``."""

import asyncio
from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import DiffAccepted
from support.editing import make_file, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import PLUGIN, Heard, RunningNeovim, hearing, neovim_with_plugin, running_neovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_TABLINE = """
vim.cmd("redraw")
local cells = {}
for column = 1, vim.o.columns do cells[column] = vim.fn.screenstring(1, column) end
return table.concat(cells)
"""


async def test_the_label_of_a_tab_page_has_the_name_of_the_file_and_no_abbreviations(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    labels: str = await neovim.lua(_TABLINE)
    assert "a.py (proposed)" in labels
    assert "/" not in labels


async def test_a_file_that_has_the_name_of_a_view_is_left_alone(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    own = make_file(workspace, "a.py (proposed)", "mine\n")
    await neovim.lua("vim.cmd.edit(vim.fn.fnameescape(...))", own)
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.enter("w")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")
    await view_is_closed(neovim)
    assert await neovim.lines() == ["mine"]
    assert Path(own).read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize("layout", ["tab", "vertical", "unified"])
async def test_a_session_that_is_saved_during_a_review_is_restored_without_it(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, layout: str
) -> None:
    await neovim.lua("vim.g.isthmus_review = { pause = 0, reading = 0, layout = ... }", layout)
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}")
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.command("mksession saved.vim")
    async with running_neovim(workspace, "-S", "saved.vim") as restored:

        async def is_loaded() -> bool:
            return await restored.lua("return vim.v.vim_did_enter == 1 and vim.fn.exists('g:SessionLoad') == 0")

        await eventually_async(is_loaded, what="the session is loaded")
        assert await restored.tabs() == 1
        assert await restored.lua("return vim.fn.winnr('$')") == 1
        assert [Path(name).name for name in await restored.buffers() if name] == ["own.txt"]
        assert not await restored.has_message("E")


async def test_a_session_without_a_review_is_saved_as_ever(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'own.txt')}", "mksession saved.vim")
    await editor.aclose()
    await neovim.command("mksession other.vim")
    saved = (workspace / "saved.vim").read_text(encoding="utf-8")
    assert saved == (workspace / "other.vim").read_text(encoding="utf-8")


async def test_with_writing_switched_off_a_review_names_the_command_that_accepts(workspace: Path) -> None:
    async with running_neovim(workspace, "-M", make_file(workspace, "own.txt")) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with hearing(editor) as heard:
            await editor.open_diff(review(make_file(workspace, "a.py"), "one\nTWO\nthree\n"))
            assert ":IsthmusDiffAccept accept" in await neovim.lua(
                "return (vim.wo.winbar:gsub('%%#%w+#', ''):gsub('%%%*', ''))"
            )
            await neovim.enter("w")
            await eventually_async(
                lambda: neovim.has_message("writing is switched off (nvim -M): :IsthmusDiffAccept accepts"),
                what="it says so",
            )
            assert heard.decisions == []
            await neovim.enter("IsthmusHunkReject", "IsthmusHunkAccept", "IsthmusDiffAccept")
            assert await heard.decision() == DiffAccepted("review-1", "one\nTWO\nthree\n")
        await editor.aclose()


async def test_with_changing_switched_off_a_question_is_asked_and_an_agent_started(workspace: Path) -> None:
    plugin = ("--cmd", "let g:isthmus = {'autostart': v:false}", "--cmd", f"set runtimepath^={PLUGIN}")
    async with running_neovim(workspace, "-M", *plugin) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        asking = asyncio.create_task(editor.confirm("Run it?", "rm a.py"))

        async def is_asked() -> bool:
            return "rm a.py" in await neovim.lines()

        await eventually_async(is_asked, what="the question")
        await neovim.type("y")
        assert await asyncio.wait_for(asking, 30) is True
        await neovim.lua("_G.isthmus_environment = { former = {} }")
        await neovim.command("IsthmusTerminal cat")

        async def runs() -> bool:
            return await neovim.lua("return vim.b.terminal_job_id ~= nil")

        await eventually_async(runs, what="the agent")
        await editor.aclose()


async def test_a_session_that_is_saved_beside_an_agent_is_restored_without_it(workspace: Path, tmp_path: Path) -> None:
    agent = tmp_path / "claude"
    agent.write_text("#!/bin/sh\nexec cat\n", encoding="utf-8")
    agent.chmod(0o700)
    own = make_file(workspace, "own.txt")
    terminal = {"command": [str(agent), "--option"]}
    async with neovim_with_plugin(workspace, has_screen=True, autostart=False, terminal=terminal) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        await neovim.lua("_G.isthmus_environment = { former = {} }")
        await neovim.command(f"edit {own}", "IsthmusTerminal", f"IsthmusTerminal {agent}")
        assert sorted(Path(name).name for name in await neovim.buffers()) == [
            "claude (agent 2)", "claude (agent)", "own.txt",
        ]  # fmt: skip
        await neovim.command("IsthmusFocus", "mksession saved.vim")
        await editor.aclose()
    async with running_neovim(workspace, "-S", "saved.vim") as restored:

        async def is_loaded() -> bool:
            return await restored.lua("return vim.v.vim_did_enter == 1 and vim.fn.exists('g:SessionLoad') == 0")

        await eventually_async(is_loaded, what="the session is loaded")
        assert await restored.lua("return vim.fn.winnr('$')") == 1
        assert [Path(name).name for name in await restored.buffers() if name] == ["own.txt"]
        assert await restored.jobs() == []
