"""Open files follow what agents write without a review, and their diagnostics are of the new text."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.agent.part import PartTurn
from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.neovim.editor import attach
from isthmus.ide.options import CompanionOptions
from isthmus.parts.editor.diagnostics import EditDiagnosticsOfIde
from isthmus.parts.editor.directory import EditorDirectory
from isthmus.tools.port.tool_set import ToolScope
from support import small_language_server
from support.claude_cli import ClaudeCli, claude_cli
from support.companion import running_host
from support.editing import make_file
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SERVER = 'vim.lsp.start({ name = "small", cmd = { ... }, root_dir = vim.fn.getcwd() }, { bufnr = 0 })'


@asynccontextmanager
async def neovim_with_agent(
    workspace: Path, *arguments: str, share_context: bool = True
) -> AsyncGenerator[tuple[RunningNeovim, ClaudeCli]]:
    """Start a Neovim, a companion for it, and an agent that is attached."""
    async with running_neovim(workspace, *arguments) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with running_host(editor, CompanionOptions(share_context=share_context)), claude_cli(workspace) as agent:
            yield neovim, agent


async def shows(neovim: RunningNeovim, *lines: str) -> None:
    """Wait until the current buffer has these lines."""

    async def shown() -> bool:
        return await neovim.lines() == list(lines)

    await eventually_async(shown, what=f"the buffer has {lines}")


@pytest.mark.parametrize("share_context", [True, False])
async def test_what_an_agent_writes_without_a_review_is_shown(workspace: Path, share_context: bool) -> None:
    path = make_file(workspace, "a.py", "old\n")
    async with neovim_with_agent(workspace, path, share_context=share_context) as (neovim, _):
        for number in range(3):
            make_file(workspace, "a.py", f"new {number}\n")
            await shows(neovim, f"new {number}")
        other = make_file(workspace, "b.py", "old\n")
        await neovim.command(f"edit {other}")
        (workspace / "partial").write_text("replaced\n")
        (workspace / "partial").replace(other)
        await shows(neovim, "replaced")


async def test_what_was_written_before_the_agent_attached_or_as_it_left_is_shown(workspace: Path) -> None:
    path = make_file(workspace, "a.py", "old\n")
    async with (
        running_neovim(workspace, path) as neovim,
        running_host(await attach(neovim.address, PATIENT_NEOVIM), CompanionOptions()),
    ):
        make_file(workspace, "a.py", "before\n")
        async with claude_cli(workspace):
            await shows(neovim, "before")
            make_file(workspace, "a.py", "at the end\n")
        await shows(neovim, "at the end")


@pytest.mark.parametrize("seconds", ["0.05", "0.7"])
async def test_the_diagnostics_are_of_the_text_that_was_just_written(workspace: Path, seconds: str) -> None:
    path = make_file(workspace, "a.py", "one\nwrong old\n")
    async with neovim_with_agent(workspace, path) as (neovim, agent):
        await neovim.lua(SERVER, sys.executable, small_language_server.__file__, seconds)

        async def found(uri: str | None = None) -> list[str]:
            content = json.loads(await agent.text("getDiagnostics", {"uri": uri} if uri else {}))
            return [each["message"] for file in content for each in file["diagnostics"]]

        async def has_old() -> bool:
            return await found() == ["wrong old is wrong"]

        await eventually_async(has_old, what="the diagnostics of the old text")
        make_file(workspace, "a.py", "wrong new\n")
        assert await found(f"file://{path}") == ["wrong new is wrong"]
        make_file(workspace, "a.py", "wrong newer\nwrong too\n")
        assert await found() == ["wrong newer is wrong", "wrong too is wrong"]
        make_file(workspace, "a.py", "right\n")
        assert await found(f"file://{path}") == []


async def test_our_own_agent_waits_for_a_slow_language_server(workspace: Path) -> None:
    path = make_file(workspace, "a.py", "one\nwrong old\n")
    directory = EditorDirectory(os.environ)
    watch = EditDiagnosticsOfIde(lambda scope: directory.client(scope.workspace))
    async with neovim_with_agent(workspace, path) as (neovim, _):
        await neovim.lua(SERVER, sys.executable, small_language_server.__file__, "0.7")

        async def has_old() -> bool:
            return await neovim.lua("return #vim.diagnostic.get(0)") == 1

        await eventually_async(has_old, what="the diagnostics of the old text")
        turn = PartTurn(ToolScope(workspace, "conversation", "task"), "conversation")
        await watch.before_edit(turn, Path(path))
        make_file(workspace, "a.py", "wrong new\n")
        assert "wrong new is wrong" in (await watch.before_model(turn) or "")
    await directory.aclose()


async def test_a_file_with_unsaved_text_is_reported_once_while_an_agent_writes_it(workspace: Path) -> None:
    path = make_file(workspace, "a.py", "old\n")
    editor = HeadlessEditor((str(workspace),))
    async with running_host(editor, CompanionOptions()), claude_cli(workspace):
        await editor.open_file(path)
        editor.edit(path, "mine\n")
        for text in ("new\n", "newer text\n"):
            make_file(workspace, "a.py", text)
            await eventually_async(lambda: len(editor.messages) == 1, what="the message")
        assert "changed on disk" in editor.messages[0]
        assert await editor.text(path) == "mine\n"
