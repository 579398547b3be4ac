"""The text of a file in the user's editor, where that has changes which are not saved.

Tools read it, so that the model sees what the user sees. They do not write over it: the user decides what becomes of
changes that are not saved.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from isthmus.development_tool import FileDiff
from isthmus.tools.port.failure import ToolFailure

EditorText: TypeAlias = Callable[[Path], Awaitable[str | None]]
"""Returns the text of a file at an absolute path as the user's editor shows it; None if no editor says."""
UNSAVED_CHANGES = "unsaved_changes"


async def no_editor(path: Path) -> str | None:
    """Return None: there is no editor to ask."""
    return None


async def unsaved_text(editor_text: EditorText, path: Path, on_disk: str) -> str | None:
    """Return the editor's text of a file if it differs from that on the disk in more than line ends."""
    shown = await editor_text(path)
    return shown if shown is not None and _comparable(shown) != _comparable(on_disk) else None


async def require_saved(editor_text: EditorText, change: FileDiff) -> None:
    """Check that a file to be changed has no unsaved changes in the editor.

    Raises:
        ToolFailure: it has.
    """
    if change.old_content is None:
        return
    if await unsaved_text(editor_text, Path(change.file_path), change.old_content) is not None:
        raise ToolFailure(
            f"{change.file_name} has changes in the user's editor that are not saved, so it was not changed; ask the"
            " user to save or discard them, then read it again and repeat the edit",
            UNSAVED_CHANGES,
        )


def _comparable(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\n")
