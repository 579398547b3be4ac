"""The user in front of an editor, for the contract suite: one driver for each Editor implementation.

To put another editor under the contract, write a driver and add it to DRIVERS.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from isthmus.editors.headless import HeadlessEditor
from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import Editor, Range
from isthmus.ide.reviews.review import DiffReview
from support.editor_deadlines import PATIENT_NEOVIM
from support.emacs import emacs_driver
from support.jupyter_driver import jupyter_user
from support.minimal_editor_driver import minimal_editor_driver
from support.neovim import RunningNeovim, running_neovim
from support.remote_editor_driver import remote_editor_driver
from support.stdio_editor import stdio_driver


class EditorDriver(Protocol):
    """Actions of a user that no agent may request. Positions are those of the port: 0-based, UTF-16 units."""

    @property
    def editor(self) -> Editor:
        """The editor under test, attached."""
        ...

    async def open(self, path: Path) -> None:
        """Open a file and give it the focus."""
        ...

    async def select(self, at: Range) -> None:
        """Select in the focused file; an empty range puts the cursor there."""
        ...

    async def type_over(self, text: str) -> None:
        """Replace the text of the focused file, without saving it."""
        ...

    async def edit_review(self, review: DiffReview, text: str) -> None:
        """Replace the proposed text in a diff view."""
        ...

    async def accept(self, review: DiffReview) -> None:
        """Accept the text of a diff view."""
        ...

    async def reject(self, review: DiffReview) -> None:
        """Close a diff view without accepting."""
        ...

    async def has_message(self, text: str) -> bool:
        """Return whether the editor has shown a message with this text."""
        ...

    async def quit(self) -> None:
        """Quit the editor without saving."""
        ...


class HeadlessDriver:
    """A driver that uses the headless editor's methods for users."""

    def __init__(self, folder: Path) -> None:
        self._editor = HeadlessEditor((str(folder),))
        self._path = ""

    @property
    def editor(self) -> HeadlessEditor:
        return self._editor

    async def open(self, path: Path) -> None:
        self._path = str(path)
        await self._editor.open_file(self._path)

    async def select(self, at: Range) -> None:
        await self._editor.open_file(self._path, at)

    async def type_over(self, text: str) -> None:
        self._editor.edit(self._path, text)

    async def edit_review(self, review: DiffReview, text: str) -> None:
        self._editor.edit_diff(review.id, text)

    async def accept(self, review: DiffReview) -> None:
        self._editor.accept_diff(review.id)

    async def reject(self, review: DiffReview) -> None:
        self._editor.reject_diff(review.id)

    async def has_message(self, text: str) -> bool:
        return any(text in message for message in self._editor.messages)

    async def quit(self) -> None:
        self._editor.quit()


@asynccontextmanager
async def _headless(folder: Path) -> AsyncGenerator[EditorDriver]:
    driver = HeadlessDriver(folder)
    yield driver
    await driver.editor.aclose()


class NeovimDriver:
    """A user at the keyboard of a real Neovim."""

    def __init__(self, neovim: RunningNeovim, editor: NeovimEditor) -> None:
        self._neovim = neovim
        self._editor = editor

    @property
    def editor(self) -> NeovimEditor:
        return self._editor

    async def open(self, path: Path) -> None:
        await self._neovim.command(f"edit {path}")

    async def select(self, at: Range) -> None:
        await self._neovim.lua(
            """
            local function place(line, character)
              local text = vim.fn.getline(line + 1)
              local new = vim.fn.has("nvim-0.11") == 1
              local byte = new and vim.str_byteindex(text, "utf-16", character, false)
                or vim.str_byteindex(text, character, true)
              vim.api.nvim_win_set_cursor(0, { line + 1, byte })
            end
            local line, character, end_line, end_character = ...
            place(line, character)
            if end_line ~= line or end_character ~= character then
              vim.cmd("normal! v")
              place(end_line, end_character - 1)
            end
            """,
            at.start.line, at.start.character, at.end.line, at.end.character,
        )  # fmt: skip

    async def type_over(self, text: str) -> None:
        await self._neovim.set_lines(*text.removesuffix("\n").split("\n"))

    async def edit_review(self, review: DiffReview, text: str) -> None:
        await self._go_to(review)
        await self._neovim.set_lines(*text.removesuffix("\n").split("\n"))

    async def accept(self, review: DiffReview) -> None:
        await self._go_to(review)
        await self._neovim.enter("write")

    async def reject(self, review: DiffReview) -> None:
        await self._go_to(review)
        await self._neovim.enter("quit")

    async def has_message(self, text: str) -> bool:
        return await self._neovim.has_message(text)

    async def quit(self) -> None:
        await self._neovim.quit()

    async def _go_to(self, review: DiffReview) -> None:
        await self._neovim.lua(
            """
            for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
              local is_proposed = vim.api.nvim_buf_get_name(buffer):find(" (proposed)", 1, true)
              if is_proposed and vim.b[buffer].isthmus_path == ... then
                return vim.api.nvim_set_current_win(vim.fn.win_findbuf(buffer)[1])
              end
            end
            error("no review of " .. ...)
            """,
            review.file_path,
        )


@asynccontextmanager
async def _neovim(folder: Path) -> AsyncGenerator[EditorDriver]:
    async with running_neovim(folder) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        yield NeovimDriver(neovim, editor)
        await editor.aclose()


DRIVERS: Mapping[str, Callable[[Path], AbstractAsyncContextManager[EditorDriver]]] = {
    "emacs": emacs_driver,
    "headless": _headless,
    "jupyter": jupyter_user,
    "minimal": minimal_editor_driver,
    "neovim": _neovim,
    "remote-claude": remote_editor_driver("claude"),
    "remote-gemini": remote_editor_driver("gemini"),
    "stdio": stdio_driver,
}
"""Drivers by the name of the editor: each yields a user in front of it, with a folder as workspace."""
