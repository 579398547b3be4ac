"""Stamps of files and folders, by which what was read from them is known to be current without reading it again."""

import os
from pathlib import Path
from typing import TypeAlias

from isthmus.record import record

UNSETTLED_NANOSECONDS = 50_000_000
"""A file changed so shortly before it was read may change again without a difference to be seen."""

Stamp: TypeAlias = tuple[int, int, int, int] | None
"""Inode, size and both times (modified, changed) of a file or folder; None if it does not exist."""


def stamp_of(path: Path) -> Stamp:
    """Return a value that changes when a file or folder changes."""
    try:
        status = os.stat(path)  # noqa: PTH116 - each turn looks at dozens of files; pathlib is slow
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@record
class Stamps:
    """The state of files and folders before they were read; reading began ``at`` this time, in nanoseconds."""

    stamps: tuple[tuple[Path, Stamp], ...]
    at: int

    def are_current(self) -> bool:
        """Return whether none of the files and folders has changed since. Blocking."""
        newest = max((max(stamp[2:]) for _, stamp in self.stamps if stamp is not None), default=0)
        return self.at - newest > UNSETTLED_NANOSECONDS and all(stamp_of(path) == was for path, was in self.stamps)
