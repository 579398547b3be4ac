"""Opens a proposed file in the user's own editor: $VISUAL, else $EDITOR, else an installed one."""

import asyncio
import os
import shlex
import shutil
import tempfile
from pathlib import Path, PurePath

from isthmus.errors import IsthmusError

FALLBACKS = ("editor", "nano", "vim", "vi")
"""Editors to use if no variable names one, the system's default first.

Without Debian's sensible-editor, which would ask for an editor in the middle of our question.
"""


class TextEditorError(IsthmusError):
    """The editor could not be started, or ended with an error."""


async def edit_text(content: str, file_name: str) -> str:
    """Return the content as the user leaves it. ``file_name`` has the suffix by which editors choose a language.

    The file is private (0600) and removed afterwards. A final newline that the editor added by itself is removed.

    Raises:
        TextEditorError: the editor cannot be started, failed, or left a file that is not UTF-8.
    """
    command = _editor()
    folder = Path(tempfile.mkdtemp(prefix="isthmus-edit-"))
    try:
        path = folder / (_plain_name(file_name) or "proposal.txt")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content.encode("utf-8", "surrogatepass"))
        try:
            process = await asyncio.create_subprocess_exec(*command, str(path))
        except OSError as error:
            raise TextEditorError(f"cannot start the editor {command[0]!r}: {error.strerror}; set EDITOR") from error
        status = await process.wait()
        if status != 0:
            raise TextEditorError(f"the editor {command[0]!r} ended with status {status}; nothing was changed")
        try:
            edited = path.read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError) as error:
            raise TextEditorError(f"the edited file cannot be read as UTF-8 text: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if content and not content.endswith("\n") and edited == content + "\n":
        return content
    return edited


def editor_line() -> str:
    """Return a line that says which editor is used, and which variable names it."""
    try:
        command = _editor()
    except TextEditorError as error:
        return f"Text editor: {error}"
    named = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name)), None)
    origin = f"${named}" if named is not None else "neither $VISUAL nor $EDITOR is set"
    missing = "" if shutil.which(command[0]) else "; it is not found"
    return f"Text editor, for Ctrl-X Ctrl-E and for e at a proposed edit: {shlex.join(command)} ({origin}{missing})"


def _editor() -> list[str]:
    value = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if value:
        try:
            command = shlex.split(value)
        except ValueError as error:
            raise TextEditorError(f"EDITOR is {value!r}, which is not a command: {error}") from error
        if command:
            return command
    found = next((name for name in FALLBACKS if shutil.which(name)), None)
    if found is None:
        raise TextEditorError("no text editor was found; set EDITOR to the command of one")
    return [found]


def _plain_name(file_name: str) -> str:
    """Return the file's name without characters that are special to a shell or an editor."""
    name = PurePath(file_name).name
    return "".join(character if character.isalnum() or character in "._-" else "_" for character in name).lstrip("-")
