"""The files of one call that keep what is too long to show, or no text; they lie in the folder of its task.

Deliberately not here: the output of a command while it comes (:mod:`isthmus.tools.shell_output`).
"""

import os
import re
import secrets
from pathlib import Path

MAXIMUM_FILES = 50
"""Of one call."""


class KeptFiles:
    """Makes new files each time: models use the ids of calls again."""

    def __init__(self, folder: Path, call_id: str) -> None:
        self._folder = folder
        self._stem = re.sub(r"[^\w.-]", "_", call_id)[-100:]
        self._count = 0

    def keep(self, data: bytes, ending: str) -> Path | None:
        """The file that has the data, for its owner alone; None when there are too many. ``ending`` is as ``.png``.

        Raises:
            OSError: it cannot be written; then there is none.
        """
        if self._count >= MAXIMUM_FILES:
            return None
        self._count += 1
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{self._stem}-{secrets.token_hex(4)}{ending}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path
