"""The whole agent beside a real Neovim with a companion, over the Claude protocol: the loop that a user sees."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.neovim.editor import attach
from isthmus.events import TaskState
from isthmus.ide.options import CompanionOptions
from isthmus.parts.editor.directory import EditorDirectory
from support.companion import running_host
from support.editing import make_file
from support.editor_deadlines import PATIENT_NEOVIM
from support.editor_harness import PATIENT_EDITOR, editor_harness
from support.isthmus_program import ISTHMUS
from support.neovim import RunningNeovim, running_neovim
from support.pty_program import PtyProgram, pty_program
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

LINTER = """
local namespace = vim.api.nvim_create_namespace("linter")
local function lint(buffer)
  local found = {}
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, true)) do
    if line:find("wrong") then
      local place = { lnum = number - 1, col = 0, end_lnum = number - 1, end_col = 5 }
      found[#found + 1] = vim.tbl_extend("force", place, { message = line .. " is not defined", source = "linter" })
    end
  end
  vim.diagnostic.set(namespace, buffer, found)
end
vim.api.nvim_create_autocmd({ "BufReadPost", "FileChangedShellPost" }, {
  pattern = "*.py",
  callback = function(event) lint(event.buf) end,
})
lint(0)
"""


@asynccontextmanager
async def neovim_with_companion(workspace: Path, *arguments: str) -> AsyncGenerator[RunningNeovim]:
    """Start a Neovim with a linter, and a companion that serves it."""
    async with running_neovim(workspace, *arguments) as neovim:
        await neovim.lua(LINTER)
        async with running_host(await attach(neovim.address, PATIENT_NEOVIM), CompanionOptions()):
            yield neovim


async def test_an_edit_is_changed_in_neovim_and_what_it_broke_goes_to_the_model(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_file(workspace, "a.py", "wrong_before\n")
    replies = [
        Reply.of(Call("write_file", {"file_path": path, "content": "wrong_before\nproposed\n"})),
        Reply.of(Say("sorry")),
    ]
    async with (
        neovim_with_companion(workspace, path) as neovim,
        editor_harness(workspace, tmp_path / "data", replies, monkeypatch, timeouts=PATIENT_EDITOR) as harness,
    ):
        assert "Connected to Neovim (Claude Code IDE protocol" in (await harness.run("/ide")).text
        asked = await harness.prompt("change it")

        async def is_shown() -> bool:
            return await neovim.tabs() == 2

        await eventually_async(is_shown, what="the diff view")
        await neovim.set_lines("wrong_before", "", "wrong_by_the_user")
        await neovim.enter("write")

        async def is_over() -> bool:
            return (await harness.engine.get(asked.task_id)).state is TaskState.COMPLETED

        await eventually_async(is_over, what="the task is completed")
        assert Path(path).read_text(encoding="utf-8") == "wrong_before\n\nwrong_by_the_user\n"
        told = harness.last_user_text()
        assert "a.py:\n  ✘ [Line 3:1] wrong_by_the_user is not defined (linter)" in told
        assert "wrong_before is not defined" not in told

        async def is_reloaded() -> bool:
            return await neovim.tabs() == 1 and "wrong_by_the_user" in await neovim.lines()

        await eventually_async(is_reloaded, what="the file is shown as it is now")


@pytest.mark.parametrize("trusted", [True, False])
async def test_our_companion_says_over_this_protocol_too_whether_the_folder_is_trusted(
    workspace: Path, trusted: bool
) -> None:
    directory = EditorDirectory(os.environ)
    async with running_host(HeadlessEditor((str(workspace),)), CompanionOptions(is_trusted=trusted)):
        await directory.context(workspace)
        assert directory.trust(workspace) is trusted
        await directory.disable(workspace)
        assert directory.trust(workspace) is None
    await directory.aclose()


async def test_the_question_in_our_terminal_says_that_the_diff_is_open_in_neovim(
    workspace: Path, tmp_path: Path
) -> None:
    path = make_file(workspace, "a.py", "before\n")
    script = tmp_path / "script.yaml"
    call = {"name": "write_file", "arguments": {"file_path": "a.py", "content": "after\n"}}
    script.write_text(json.dumps({"scenarios": [{"prompt": "go", "replies": [{"steps": [{"call": call}]}]}]}), "utf-8")

    def ask(terminal: PtyProgram) -> None:
        terminal.wait_for(r"(?m)^\u203a ?$").press("go\r").wait_for(
            r"(?m)^  Also open in Neovim; the first answer counts\.$"
        )
        terminal.wait_for("3  ").press("3").wait_for("not run")

    async with neovim_with_companion(workspace, path) as neovim:
        command = [*ISTHMUS, "-m", f"scripted:{script}", "--data-dir", str(tmp_path / "data")]
        with pty_program(command, folder=workspace, environment=dict(os.environ)) as terminal:
            await asyncio.to_thread(ask, terminal)

            async def is_closed() -> bool:
                return await neovim.tabs() == 1

            await eventually_async(is_closed, what="the view is closed")
