"""Resolves the paths that clients send, and reads the files as far as a client may access them.

A client may access open files that are not hidden from agents, and other files in the workspace. Without this limit,
``openFile`` and the selection tools would give it access to files outside its sandbox.
"""

import asyncio
import os
from pathlib import Path

from isthmus.files.atomic import read_regular, require_regular
from isthmus.ide.claude.wire import language_id
from isthmus.ide.companion import Companion
from isthmus.ide.editor import Capability, EditorError, OpenFile
from isthmus.ide.workspace.workspace_files import is_inside
from isthmus.record import record
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_FILE_BYTES = 64 * 1024 * 1024


async def locate(companion: Companion, path: str) -> str:
    """Return an absolute path unchanged; resolve a relative one in the first workspace folder that has the file.

    If no folder has the file, resolve the path in the first folder.
    """
    if path.startswith("/"):
        return path
    return _below_folders(path, await companion.workspace_folders())


def _below_folders(path: str, folders: tuple[str, ...]) -> str:
    candidates = [str(Path(folder, path)) for folder in folders]
    exists = os.path.exists  # unlike Path.exists, False for a path that is too long
    return next((candidate for candidate in candidates if exists(candidate)), candidates[0])


def same_file(files: tuple[OpenFile, ...], path: str) -> OpenFile | None:
    """Return the open file with this path, or otherwise with the same path after resolving links."""
    named = next((file for file in files if os.path.normpath(file.path) == os.path.normpath(path)), None)
    if named is not None:
        return named
    real = os.path.realpath(path)
    return next((file for file in files if os.path.realpath(file.path) == real), None)


async def find_open(companion: Companion, path: str) -> OpenFile | None:
    """Return the open file with an absolute path; None if it is not open or hidden from agents.

    Raises:
        EditorError: the editor does not answer.
    """
    return same_file(await companion.open_files(), path)


@record
class DocumentSummary:
    """Language and number of lines of a document."""

    language_id: str
    line_count: int


async def document_summary(companion: Companion, path: str, file: OpenFile | None) -> DocumentSummary:
    """Return the language and the number of lines of a file, from the editor, or otherwise from its name and text."""
    language = (file.language_id if file is not None else None) or language_id(path)
    if file is not None and file.line_count is not None:
        return DocumentSummary(language, file.line_count)
    text = await text_of(companion, path if file is None else file.path)
    return DocumentSummary(language, text.count("\n") + 1)


async def text_of(companion: Companion, path: str) -> str:
    """Return the text of a file with its unsaved changes, or otherwise from disk; empty if it is binary.

    Raises:
        EditorError: the file cannot be read.
    """
    is_known = companion.options.share_context and Capability.TEXT not in companion.editor.unavailable
    unsaved = await companion.editor.text(path) if is_known else None
    return await asyncio.to_thread(_text_on_disk, path) if unsaved is None else unsaved


async def require_openable(companion: Companion, path: str) -> None:
    """Raise unless the editor may open this file, which is not open yet, for a client.

    Raises:
        EditorError: the file is outside the workspace, missing, not a regular file or too large.
    """
    companion.hidden.opens(path, _openable_target(path, await companion.workspace_folders()))


def _openable_target(path: str, folders: tuple[str, ...]) -> str:
    """Return the real path of a file that may be opened.

    Raises:
        EditorError: the file may not be opened.
    """
    real = os.path.realpath(path)
    if not is_inside(path, folders):
        raise EditorError(
            f"{path} is outside the workspace ({', '.join(folders)}) and not open: agents can open files in the "
            "workspace only, besides those that the user has opened"
        )
    try:
        status = Path(real).stat()
        require_regular(status)
    except FileNotFoundError as error:
        raise EditorError(f"File not found: {path}") from error
    except (OSError, ValueError) as error:
        raise EditorError(_unreadable(path, error)) from error
    if status.st_size > MAXIMUM_FILE_BYTES:
        raise EditorError(f"{path} has {status.st_size} bytes; at most {MAXIMUM_FILE_BYTES} are opened for an agent")
    return real


def _text_on_disk(path: str) -> str:
    try:
        return decode_text(read_regular(Path(path), MAXIMUM_FILE_BYTES)).text
    except BinaryContentError:
        return ""
    except FileNotFoundError as error:
        raise EditorError(f"File not found: {path}") from error
    except (OSError, ValueError) as error:
        raise EditorError(_unreadable(path, error)) from error


def _unreadable(path: str, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{path} cannot be opened: {reason or error}"
