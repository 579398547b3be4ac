"""Files of one call with content that is too long to show or not text, in the folder of its task.

Does not contain the output of a running command: see :mod:`isthmus.tools.shell.shell_output`.
"""

import contextlib
import errno
import os
import re
import secrets
from pathlib import Path

MAXIMUM_FILES = 50
"""Maximum number of files of one call."""
MAXIMUM_FOLDER_BYTES = 1024 * 1024 * 1024
"""Maximum size in bytes of all files of a task."""


class KeptFiles:
    """Writer of the files of one call. Never overwrites a file, because models reuse the ids of calls."""

    def __init__(self, folder: Path, call_id: str) -> None:
        self._folder = folder
        self._stem = stem_of(call_id)
        self._count = 0

    def keep(self, data: bytes, ending: str) -> Path | None:
        """Write the data to a new file with mode 0600 and return its path; None if the call has too many files.

        ``ending`` includes the dot: ``.png``.

        Raises:
            OSError: the file cannot be written, or the files of the task are too large; no file is left then.
        """
        if self._count >= MAXIMUM_FILES:
            return None
        self._count += 1
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _size(self._folder) + len(data) > MAXIMUM_FOLDER_BYTES:
            size = f"{MAXIMUM_FOLDER_BYTES // 1024**2:,} MiB"
            raise OSError(errno.EDQUOT, f"the files of this task have reached the limit of {size}")
        path = self._folder / f"{self._stem}-{secrets.token_hex(4)}{ending}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path


def stem_of(call_id: str) -> str:
    """Return the beginning of the names of a call's files, up to ``-`` and eight random hexadecimal digits."""
    return re.sub(r"[^\w.-]", "_", call_id)[-100:]


def _size(folder: Path) -> int:
    """Return the size in bytes of the files directly in a folder."""
    size = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                size += entry.stat(follow_symlinks=False).st_size
    return size
