"""Whether a file has been written since one looked last; its content does not matter here."""

import asyncio
import contextlib
import os
from dataclasses import dataclass

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What changes when a file is written or replaced. Two equal ones of a path: nobody did, as far as one can tell."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: str) -> "FileStamp | None":
        """That of the file at a path, links followed; None: there is none that could be read."""
        try:
            status = os.stat(path)  # noqa: PTH116 - many a second
        except (OSError, ValueError):
            return None
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


async def wait_until_written(path: str, before: FileStamp | None, seconds: float) -> None:
    """Return when the file differs from ``before`` and does not change any more, or after ``seconds``."""
    last = before
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while last == before or last != FileStamp.of(path):
                last = FileStamp.of(path)
                await asyncio.sleep(POLL_SECONDS)
