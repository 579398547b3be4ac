"""The files of a workspace for a hosted ACP agent: the port :class:`isthmus.acp.host.files.SessionFiles`.

The rules are our own agent's: nothing outside the workspace or closed by ``.geminiignore`` is read or written, and
nothing of git is written.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from isthmus.acp.host.files import AskedRead, Expected, FileRefusedError
from isthmus.errors import IsthmusError
from isthmus.files.atomic import write_if_unchanged
from isthmus.files.nofollow import make_folders
from isthmus.files.path_rules import followed
from isthmus.files.private_files import is_private
from isthmus.text.text_file import TextForm, with_newlines_of
from isthmus.tools.edits.edit import edit_target
from isthmus.tools.port.content import read_bytes, text_of
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import OUTSIDE_WORKSPACE, Workspace


class WorkspaceFiles:
    """The text files of one workspace, and of ``others``, further folders of its session."""

    def __init__(self, folder: Path, others: Iterable[Path] = ()) -> None:
        self._workspace = Workspace(folder, others)

    async def read(self, path: str) -> str:
        """Return the text of a file."""
        return await asyncio.to_thread(self._read, path)

    async def write(self, path: str, text: str, expected: Expected | None = None) -> None:
        """Write a file in the encoding that it has."""
        await asyncio.to_thread(self._write, path, text, expected)

    def asked_read(self, path: str) -> AskedRead | None:
        """Return the question about a file that holds secrets or that git ignores; None for another file."""
        try:
            resolved = self._workspace.resolve(path)
        except ToolFailure:
            return None
        if is_private((str(resolved), *followed(self._workspace.root / path))):
            return AskedRead(str(resolved), "may hold secrets", "Always allow this file")
        if resolved.exists() and (folder := self._workspace.ignored_folder(resolved)) is not None:
            return AskedRead(str(folder), "git ignores", f"Always allow the ignored files in {folder}")
        return None

    def is_same(self, path: str, other: str) -> bool:
        """Return whether two paths mean the same file."""
        try:
            return self._workspace.resolve(path) == self._workspace.resolve(other)
        except ToolFailure:
            return False

    def _read(self, path: str) -> str:
        try:
            resolved = self._workspace.open_path(path)
            return text_of(read_bytes(resolved, path), resolved, path).text
        except ToolFailure as failure:
            missing, outside = failure.category == "file_not_found", failure.category == OUTSIDE_WORKSPACE
            raise FileRefusedError(str(failure), is_missing=missing, is_outside=outside) from failure

    def _write(self, path: str, text: str, expected: Expected | None) -> None:
        try:
            target = edit_target(self._workspace, path)
            if expected is not None:
                if _plain(target.text) != _plain(expected.text):
                    raise FileRefusedError(f"{path} changed since the edit was proposed; nothing was written")
                text = with_newlines_of(target.text or "", text)
            form = TextForm() if target.file is None else target.file.form
            make_folders(target.path.parent)
            write_if_unchanged(target.path, form.encode(text), target.data, through_links=False)
        except FileRefusedError:
            raise
        except IsthmusError as error:
            raise FileRefusedError(str(error)) from error
        except OSError as error:
            raise FileRefusedError(f"cannot write {path}: {error.strerror or error}") from error


def _plain(text: str | None) -> str | None:
    return None if text is None else text.replace("\r\n", "\n")
