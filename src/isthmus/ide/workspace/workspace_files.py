"""Files of a workspace: their real paths, whether edits of them may be reviewed, and whether they have been written."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from isthmus.files.atomic import require_regular
from isthmus.ide.editor import Editor, EditorError
from isthmus.record import record
from isthmus.text.visible import printable

POLL_SECONDS = 0.02


def is_inside(path: str, folders: Sequence[str]) -> bool:
    """Return whether an absolute path, with links resolved, is in one of the folders; the file need not exist."""
    real = os.path.realpath(path)
    return any(_is_below(real, os.path.realpath(folder)) for folder in folders)


def target_of(path: str) -> str:
    """Return the real path of a file whose edits any editor can review; the file need not exist.

    Raises:
        EditorError: the path does not name a regular file.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            require_regular(Path(path).stat())
        return os.path.realpath(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        name = printable(path)
        raise EditorError(f"openDiff: {name} cannot be reviewed: {reason}; expected the path of a file") from error


async def require_within_reach(path: str, folders: Sequence[str], editor: Editor) -> None:
    """Raise unless the file is in the workspace or open in the editor.

    Raises:
        EditorError: the file is neither in the workspace nor open, or is not a regular file.
    """
    target_of(path)  # first, for its more exact error
    if is_inside(path, folders):
        return
    if not _is_among(path, [file.path for file in await editor.open_files()]):
        raise EditorError(
            f"openDiff: {printable(path)} is outside the workspace ({', '.join(folders)}); open it in the editor "
            "first, or start the companion with --workspace for its folder too"
        )


@record
class FileStamp:
    """Status of a file that changes when the file is written or replaced; equal stamps most likely mean no change."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: str) -> "FileStamp | None":
        """Return the stamp of the file at a path, links followed; None if it cannot be read."""
        try:
            status = os.stat(path)  # noqa: PTH116 - called often
        except (OSError, ValueError):
            return None
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


async def wait_until_written(path: str, before: FileStamp | None, seconds: float) -> None:
    """Wait, at most ``seconds``, until the file differs from ``before`` and has stopped changing."""
    last = before
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while last == before or last != FileStamp.of(path):
                last = FileStamp.of(path)
                await asyncio.sleep(POLL_SECONDS)


def _is_among(path: str, paths: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == os.path.realpath(other) for other in paths)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
