"""Detects whether a file has been written since the last look, without reading its content."""

import asyncio
import contextlib
import os
from dataclasses import dataclass

POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Status of a file that changes when it is written or replaced; equal stamps mean that it most likely was not."""

    modified_ns: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: str) -> "FileStamp | None":
        """Return the stamp of the file at a path, links followed; None if it cannot be read."""
        try:
            status = os.stat(path)  # noqa: PTH116 - many a second
        except (OSError, ValueError):
            return None
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


async def wait_until_written(path: str, before: FileStamp | None, seconds: float) -> None:
    """Wait until the file differs from ``before`` and does not change any more, or until ``seconds`` have passed."""
    last = before
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while last == before or last != FileStamp.of(path):
                last = FileStamp.of(path)
                await asyncio.sleep(POLL_SECONDS)
