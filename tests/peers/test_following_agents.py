"""Real agent CLIs write files without asking, and open files in a real Neovim and a real Emacs follow at once.

Claude Code and Qwen Code run in the mode in which they start by default. Gemini CLI asks by default; its mode here is
the one that it calls auto_edit. Claude Code runs if ISTHMUS_CLAUDE is its path.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from support import small_language_server
from support.claude_code import PROGRAM, claude_code
from support.coding_cli import CodingCli
from support.emacs import AT_ONCE, FLYMAKE, RunningEmacs, lisp_string, running_emacs
from support.extended import first_of
from support.gemini_cli import SETTINGS as GEMINI_SETTINGS
from support.gemini_cli import gemini_cli
from support.isthmus_program import companion_program
from support.neovim import RunningNeovim, running_neovim
from support.programs import require
from support.qwen_cli import SETTINGS as QWEN_SETTINGS
from support.qwen_cli import qwen_code
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

FOLLOW_SECONDS = 1.0
OLD, NEW = "wrong old\n", "fine\nwrong new\n"


class FollowingEditor(Protocol):
    """An editor with a companion beside it, in which the files a.py and b.py are open and a.py is in front."""

    async def text(self, path: Path) -> str:
        """Return the text of an open file as the user sees it."""
        ...

    async def problems(self, path: Path) -> list[str]:
        """Return the diagnostics of an open file."""
        ...

    async def reviews(self) -> bool:
        """Return whether a review is shown."""
        ...


class _Neovim:
    def __init__(self, neovim: RunningNeovim) -> None:
        self._neovim = neovim

    async def text(self, path: Path) -> str:
        lines = await self._neovim.lua("return vim.fn.getbufline(vim.fn.bufnr(...), 1, '$')", str(path))
        return "".join(f"{line}\n" for line in lines)

    async def problems(self, path: Path) -> list[str]:
        messages = "return vim.tbl_map(function(each) return each.message end, vim.diagnostic.get(vim.fn.bufnr(...)))"
        return list(await self._neovim.lua(messages, str(path)) or [])

    async def reviews(self) -> bool:
        return await self._neovim.tabs() > 1


@asynccontextmanager
async def _neovim(a: Path, b: Path) -> AsyncGenerator[FollowingEditor]:
    start = 'vim.lsp.start({ name = "small", cmd = { ... }, root_dir = vim.fn.getcwd() }, { bufnr = 0 })'
    async with running_neovim(a.parent, str(a), str(b)) as neovim:
        for path in (b, a):
            await neovim.command(f"edit {path}")
            await neovim.lua(start, sys.executable, small_language_server.__file__, "0.05")
        with companion_program(a.parent, "--editor", "nvim", "--address", neovim.address):
            yield _Neovim(neovim)


class _Emacs:
    def __init__(self, emacs: RunningEmacs) -> None:
        self._emacs = emacs

    async def text(self, path: Path) -> str:
        return await self._in_buffer(path, "(buffer-string)")

    async def problems(self, path: Path) -> list[str]:
        found = await self._in_buffer(path, "(vconcat (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))")
        return list(found)

    async def reviews(self) -> bool:
        return await self._emacs.reviews() != []

    async def _in_buffer(self, path: Path, code: str) -> str:
        return await self._emacs.evaluate(f"(with-current-buffer {lisp_string(path.name)} {code})")


@asynccontextmanager
async def _emacs(a: Path, b: Path) -> AsyncGenerator[FollowingEditor]:
    program = lisp_string(str(require("isthmus")))
    async with running_emacs(a.parent, f"{AT_ONCE} (setq isthmus-program {program}) (isthmus-mode 1)") as running:
        for path in (b, a):
            await running.evaluate(f"(progn (find-file {lisp_string(str(path))}) t)")
            await running.evaluate(FLYMAKE)
        await running.shows("agents can find this Emacs")
        yield _Emacs(running)
        await running.quit()


class _Writer(Protocol):
    async def write(self, path: Path, text: str) -> None:
        """Have the model write a file; return when its turn has ended."""
        ...


class _Coding:
    """Gemini CLI or Qwen Code."""

    def __init__(self, cli: CodingCli) -> None:
        self._cli = cli

    async def write(self, path: Path, text: str) -> None:
        self._cli.wire.add(Reply.of(Call("read_file", {"file_path": str(path)})))
        self._cli.wire.add(Reply.of(Call("write_file", {"file_path": str(path), "content": text})))
        self._cli.wire.add(Reply.of(Say(f"Written {path.name}.")))
        await self._cli.type(f"write {path.name}")
        await self._cli.shows(f"Written {path.name}.")


@asynccontextmanager
async def _gemini(folder: Path) -> AsyncGenerator[_Writer]:
    general = {**GEMINI_SETTINGS["general"], "defaultApprovalMode": "auto_edit"}
    async with gemini_cli(folder, files=2, settings={**GEMINI_SETTINGS, "general": general}) as cli:
        yield _Coding(cli)


@asynccontextmanager
async def _qwen(folder: Path) -> AsyncGenerator[_Writer]:
    settings = {**QWEN_SETTINGS, "tools": {"useRipgrep": False}}
    async with qwen_code(folder, settings=settings) as cli:
        await cli.sees_file("a.py")
        yield _Coding(cli)


@asynccontextmanager
async def _claude(folder: Path) -> AsyncGenerator[_Writer]:
    async with claude_code(folder, {}, "--ide") as cli:
        await cli.sees_file("a.py")
        yield cli


EDITORS = {"neovim": _neovim, "emacs": _emacs}
AGENTS = {"gemini": _gemini, "qwen": _qwen, **({"claude": _claude} if PROGRAM else {})}


@pytest.mark.parametrize("editor_name", first_of(EDITORS))
@pytest.mark.parametrize("agent_name", first_of(AGENTS))
async def test_what_an_agent_writes_without_asking_is_shown_at_once(
    workspace: Path, agent_name: str, editor_name: str
) -> None:
    a, b = workspace / "a.py", workspace / "b.py"
    for path in (a, b):
        path.write_text(OLD, encoding="utf-8")
    start_editor, start_agent = EDITORS[editor_name], AGENTS[agent_name]
    async with start_editor(a, b) as editor, start_agent(workspace) as agent:
        for path in (a, b):  # in front, and in the background
            await eventually_async(lambda path=path: editor.problems(path), what="the diagnostics of the old text")
            await agent.write(path, NEW)
            assert path.read_text(encoding="utf-8") == NEW

            async def equals_disk(path: Path = path) -> bool:
                return await editor.text(path) == NEW

            async def is_checked(path: Path = path) -> bool:
                return [problem.removesuffix(" is wrong") for problem in await editor.problems(path)] == ["wrong new"]

            await eventually_async(equals_disk, FOLLOW_SECONDS, what="the buffer equals the disk")
            await eventually_async(is_checked, what="the diagnostics of the new text")
        assert not await editor.reviews()
