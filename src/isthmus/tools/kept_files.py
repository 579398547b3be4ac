"""The files of one call that keep what is too long to show, or no text; they lie in the folder of its task.

Deliberately not here: the output of a command while it comes (:mod:`isthmus.tools.shell_output`).
"""

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path

MAXIMUM_FILES = 50
"""Of one call."""
MAXIMUM_FOLDER_BYTES = 1024 * 1024 * 1024
"""Of all that is kept of a task."""


class KeptFiles:
    """Makes new files each time: models use the ids of calls again."""

    def __init__(self, folder: Path, call_id: str) -> None:
        self._folder = folder
        self._stem = re.sub(r"[^\w.-]", "_", call_id)[-100:]
        self._count = 0

    def keep(self, data: bytes, ending: str) -> Path | None:
        """The file that has the data, for its owner alone; None when there are too many. ``ending`` is as ``.png``.

        Raises:
            OSError: it cannot be written, or the task has kept too much already; then there is none.
        """
        if self._count >= MAXIMUM_FILES:
            return None
        self._count += 1
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _size(self._folder) + len(data) > MAXIMUM_FOLDER_BYTES:
            size = f"{MAXIMUM_FOLDER_BYTES // 1024**2:,} MiB"
            raise OSError(errno.EDQUOT, f"the files of this task have {size}, which is as much as one may keep")
        path = self._folder / f"{self._stem}-{secrets.token_hex(4)}{ending}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path


def _size(folder: Path) -> int:
    """Bytes of the files that lie in a folder."""
    size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_size
    return size
