"""Commands of a page that is itself the editor: it shows files of the workspace, and says what is selected in them.

A file that the page shows is open in the editor, and the selection in the page is the editor's, so that agents learn of
both as of any editor. What comes from the page is checked here: a file is shown only if it is in the workspace, links
resolved, and not hidden from agents.
"""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast, runtime_checkable

from isthmus.encoding.codec import JsonObject
from isthmus.files.atomic import read_regular
from isthmus.ide.companion import Companion
from isthmus.ide.context_tracker import can_be_sent
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.editor import Editor, NotAvailableError, OpenFile, Position, Range
from isthmus.ide.positions import ordered
from isthmus.ide.workspace.workspace_files import FileStamp, is_inside
from isthmus.ide.workspace.workspace_search import find_files
from isthmus.text.text_file import BinaryContentError, decode_text
from isthmus.text.visible import printable

MAXIMUM_FOUND: Final = 100
"""Maximum number of files in the answer of a search."""
MAXIMUM_WORDS: Final = 200
"""Maximum number of characters that are searched for."""
MAXIMUM_SHOWN_BYTES: Final = 2 * 1024 * 1024
"""Maximum size in bytes of a file that a page shows."""
MAXIMUM_OPEN: Final = 100
"""Maximum number of open files up to which a page opens another one."""
MAXIMUM_PATH: Final = 4096
"""Maximum length of a path in characters."""
MAXIMUM_NUMBER: Final = 2**31


@runtime_checkable
class FilePage(Protocol):
    """An editor whose screen is a page that shows files."""

    @property
    def shows_files(self) -> bool:
        """Whether its page shows files."""
        ...


async def find(companion: Companion, request: JsonObject) -> JsonObject:
    """Return files whose paths have all ``words``, as ``path`` and ``name`` below the folder; ``more``: there are."""
    _require_page(companion)
    words = request.get("words", "")
    if not isinstance(words, str):
        raise ControlCommandError("expected words as text")
    folders = await companion.workspace_folders()
    found = await asyncio.to_thread(find_files, folders, words[:MAXIMUM_WORDS].split(), MAXIMUM_FOUND)
    files = [{"path": file.path, "name": file.relative} for file in found.files]
    return {"files": files, "more": found.is_partial}


async def view(companion: Companion, request: JsonObject) -> JsonObject:
    """Open a file, and return its ``text``, ``size`` and ``selection``, and the ``state`` of the file on disk.

    The file is focused unless ``focus`` is false.

    ``text`` is null, and the file is not opened, for a file that is not text (``why`` is "binary") or too large
    ("large"). A selection is line and character of its start and end, 0-based, in UTF-16 units.
    """
    path = await _usable(companion, request)
    before = FileStamp.of(path)
    text, why = await asyncio.to_thread(_read, companion, path, await companion.workspace_folders())
    open_files = {file.path: file for file in await companion.editor.open_files()}
    if text is not None:
        if path not in open_files and len(open_files) >= MAXIMUM_OPEN:
            raise ControlCommandError(f"{MAXIMUM_OPEN} files are open already; close some of them first")
        await companion.editor.open_file(path, focus=request.get("focus") is not False)
        open_files = {file.path: file for file in await companion.editor.open_files()}
    return {
        "path": path,
        "text": text,
        "why": why,
        "size": 0 if before is None else before.size,
        "state": state_of(before),
        "selection": _selection(open_files.get(path)),
    }


async def select(companion: Companion, request: JsonObject) -> JsonObject:
    """Select text in an open file that the page shows, and focus the file; ``changed`` if the file is another by now.

    ``state`` is the state of the page's text. An empty selection is a cursor.
    """
    path = await _usable(companion, request)
    at = _range(request.get("selection"))
    if all(file.path != path for file in await companion.editor.open_files()):
        raise ControlCommandError(f"{printable(path)} is not open; open it first")
    if request.get("state") != state_of(FileStamp.of(path)):
        return {"changed": True}
    await companion.editor.open_file(path, at)
    return {"selection": request["selection"]}


async def leave(companion: Companion, request: JsonObject) -> JsonObject:
    """Close a file; one that is gone or hidden by now can be closed, too."""
    _require_page(companion)
    path = _path(request)
    await companion.editor.close_file(path)
    return {"path": path}


async def mention(companion: Companion, request: JsonObject) -> JsonObject:
    """Point the agents to a file, or to ``lines`` of it: the first and the last one, 0-based.

    Return whether one was sent it (``delivered``), and otherwise in ``problem`` why not and what to do.
    """
    path = await _usable(companion, request)
    lines = request.get("lines")
    first, last = (None, None) if lines is None else _numbers(lines, 2)
    if first is not None and last is not None and last < first:
        raise ControlCommandError(f"expected the last line not before the first, received {first} and {last}")
    delivered = await companion.mention(path, first, last, selects=False)
    return {"delivered": delivered, "problem": "" if delivered else companion.mentions.undelivered_message(path)}


FILE_COMMANDS: Mapping[str, Callable[[Companion, JsonObject], Awaitable[JsonObject]]] = {
    "page_find": find,
    "page_view": view,
    "page_select": select,
    "page_leave": leave,
    "page_mention": mention,
}


async def shown_files(companion: Companion) -> list[dict[str, Any]] | None:
    """Return the open files with ``path``, ``active`` and ``state``; None if the editor's page shows no files."""
    if not _shows_files(companion.editor):
        return None
    found = await companion.editor.open_files()
    return [
        {"path": file.path, "active": file.is_active, "state": state_of(FileStamp.of(file.path))}
        for file in found
        if can_be_sent(file.path) and not companion.hidden.hides(file.path)
    ]


def _read(companion: Companion, path: str, folders: Sequence[str]) -> tuple[str | None, str]:
    """Return the text of a file, or None and the reason why there is none to show: "binary" or "large". Blocks.

    Raises:
        ControlCommandError: the file cannot be read, or a link leads to one that must not be shown.
    """
    real = os.path.realpath(path)
    _require_shown(companion, real, folders)
    try:
        # Exactly what was checked is read: a link that appears in its path meanwhile is not followed.
        data = read_regular(Path(real), MAXIMUM_SHOWN_BYTES, through_links=False)
        return decode_text(data).text, ""
    except BinaryContentError:
        return None, "binary"
    except OSError as error:
        if error.errno == errno.EFBIG:
            return None, "large"
        raise ControlCommandError(f"{printable(path)} cannot be shown: {error.strerror}") from error


def state_of(stamp: FileStamp | None) -> str:
    """Return a text that changes when the file is written or replaced; empty if there is none."""
    return "" if stamp is None else f"{stamp.modified_ns}.{stamp.size}.{stamp.inode}"


def _shows_files(editor: Editor) -> bool:
    return isinstance(editor, FilePage) and editor.shows_files


def _require_page(companion: Companion) -> None:
    if not _shows_files(companion.editor):
        raise NotAvailableError(companion.editor.identity, "it shows files itself, not in a page")


async def _usable(companion: Companion, request: JsonObject) -> str:
    """Return the path of a file that the page may show.

    Raises:
        ControlCommandError: it is outside the workspace, hidden from agents, or not the path of a file.
    """
    _require_page(companion)
    path = _path(request)
    _require_shown(companion, path, await companion.workspace_folders())
    if FileStamp.of(path) is None:
        raise ControlCommandError(f"there is no file {printable(path)}")
    return path


def _require_shown(companion: Companion, path: str, folders: Sequence[str]) -> None:
    """Refuse a path whose file is outside the workspace or hidden from agents.

    Raises:
        ControlCommandError: it is; the text says what to do.
    """
    if not is_inside(path, folders):
        raise ControlCommandError(
            f"{printable(path)} is outside the workspace; start the companion with --workspace for its folder too"
        )
    if companion.hidden.hides(path):
        raise ControlCommandError(
            f"{printable(path)} is hidden from agents by its name, .geminiignore or .aiexclude, and not shown here"
        )


def _path(request: JsonObject) -> str:
    path = request.get("path")
    if not isinstance(path, str) or not 0 < len(path) <= MAXIMUM_PATH or "\0" in path or not can_be_sent(path):
        raise ControlCommandError(f"expected the absolute path of a file, of at most {MAXIMUM_PATH} characters")
    return os.path.normpath(path)


def _range(value: object) -> Range:
    line, character, end_line, end_character = _numbers(value, 4)
    return ordered(Position(line, character), Position(end_line, end_character))


def _numbers(value: object, count: int) -> Sequence[int]:
    numbers = cast("list[object]", value) if isinstance(value, list) else []
    found = [one for one in numbers if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < MAXIMUM_NUMBER]
    if len(found) != len(numbers) or len(found) != count:
        raise ControlCommandError(f"expected {count} whole numbers from 0 on")
    return found


def _selection(file: OpenFile | None) -> list[int] | None:
    if file is None or file.cursor is None:
        return None
    at = Range(file.cursor, file.cursor) if file.selection is None else file.selection.range
    return [at.start.line, at.start.character, at.end.line, at.end.character]
