"""The user of the demonstration, who reviews the proposed edit: in an embedded Neovim, or without an editor."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

from typing_extensions import override

from isthmus.demo.processes import run_to_end, running
from isthmus.errors import IsthmusError

REVIEW_SECONDS = 40.0
Review: TypeAlias = Callable[[str], str]
"""Function that returns a proposed text as the user changes it."""

_FIND_PROPOSAL = """
for _, window in ipairs(vim.api.nvim_list_wins()) do
  local buffer = vim.api.nvim_win_get_buf(window)
  if vim.wo[window].diff and vim.bo[buffer].buftype == "acwrite" then
    vim.api.nvim_set_current_win(window)
    return vim.b[buffer].isthmus_takes_keys == true
  end
end
return false
"""


class ScriptedUser(Protocol):
    """A user at an editor."""

    editor: str
    """Name of the editor, for the output."""

    @property
    def companion_arguments(self) -> list[str]:
        """Arguments of ``isthmus companion`` that attach it to this editor."""
        ...

    async def change_and_accept(self, path: Path, review: Review) -> None:
        """Wait for the review of ``path``, change the proposal, and accept it."""
        ...


class NeovimUser(ScriptedUser):
    """A user who types into a real Neovim."""

    editor = "Neovim"

    def __init__(self, address: Path) -> None:
        self._address = address

    @property
    @override
    def companion_arguments(self) -> list[str]:
        return ["--editor", "nvim", "--address", str(self._address)]

    @override
    async def change_and_accept(self, path: Path, review: Review) -> None:
        """Change the lines of the proposal when its window takes keys, then type ``:write``."""
        from isthmus.editors.neovim.msgpack_rpc import connect

        connection = await connect(str(self._address), lambda _: None, lambda: None)
        try:
            async with asyncio.timeout(REVIEW_SECONDS):
                while not await connection.request("nvim_exec_lua", _FIND_PROPOSAL, [], timeout=10):
                    await asyncio.sleep(0.05)
            lines: list[str] = await connection.request("nvim_buf_get_lines", 0, 0, -1, True, timeout=10)
            changed = review("\n".join(lines) + "\n").removesuffix("\n").split("\n")
            await connection.request("nvim_buf_set_lines", 0, 0, -1, True, changed, timeout=10)
            # Only keys from a screen are the user's.
            await connection.request("nvim_ui_attach", 80, 24, {"ext_linegrid": True}, timeout=10)
            await connection.request("nvim_input", ":write<CR>", timeout=10)
        except TimeoutError as error:
            raise IsthmusError(f"no review of {path.name} appeared in Neovim within {REVIEW_SECONDS:g} s") from error
        finally:
            await connection.aclose()


class HeadlessUser(ScriptedUser):
    """A user without an editor, who runs ``isthmus ide`` in another terminal."""

    editor = "no editor (headless)"

    def __init__(self, opened: Path, environment: Mapping[str, str]) -> None:
        self._opened = opened
        self._environment = environment
        self._workspace = opened.parent

    @property
    @override
    def companion_arguments(self) -> list[str]:
        arguments = ["--editor", "headless", "--workspace", str(self._workspace), "--open", f"{self._opened}:1"]
        return [*arguments, "--allow-agent-accept"]  # this "user" has no terminal

    @override
    async def change_and_accept(self, path: Path, review: Review) -> None:
        """Run ``isthmus ide diffs --wait``, then ``isthmus ide accept FILE --content -``."""
        listed = json.loads(await self._ide("diffs", "--wait", str(int(REVIEW_SECONDS)), "--json"))
        proposed = next((item["new_content"] for item in listed["diffs"] if item["file"] == str(path)), None)
        if not isinstance(proposed, str):
            raise IsthmusError(f"no review of {path.name} appeared within {REVIEW_SECONDS:g} s")
        await self._ide("accept", str(path), "--content", "-", text=review(proposed))

    async def _ide(self, *arguments: str, text: str = "") -> str:
        program = [sys.executable, "-m", "isthmus", "ide", *arguments]
        return await run_to_end(program, self._environment, self._workspace, text)


@asynccontextmanager
async def neovim(
    program: str, opened: Path, folder: Path, environment: Mapping[str, str]
) -> AsyncGenerator[NeovimUser]:
    """Run a headless Neovim without a configuration, with the file ``opened``."""
    address = folder / "nvim.sock"
    arguments = [program, "--headless", "--clean", "-n", "--listen", str(address), str(opened)]
    async with running("Neovim", arguments, environment, opened.parent):
        async with asyncio.timeout(10):
            while not address.exists():
                await asyncio.sleep(0.02)
        yield NeovimUser(address)
