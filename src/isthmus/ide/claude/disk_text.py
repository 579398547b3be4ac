"""Text of files on disk for a client: whether an accepted text was written, and a line that names its place."""

import asyncio
import os
from pathlib import Path
from typing import Final

_WRITTEN_POLL_SECONDS: Final = 0.05


async def is_written(path: str, content: str) -> None:
    """Wait until a file has this text; polling suffices, because our own agent writes it soon."""
    expected = content.encode("utf-8", "surrogateescape")
    while await asyncio.to_thread(_bytes, path, len(expected)) != expected:
        await asyncio.sleep(_WRITTEN_POLL_SECONDS)


def _bytes(path: str, size: int) -> bytes | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read() if os.fstat(file.fileno()).st_size == size else None
    except OSError:
        return None


def unique_line(path: str, line: int) -> str | None:
    """Return the text of a line if no other line contains it, because startText finds only text."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    text = lines[line].strip() if line < len(lines) else ""
    return text if text and sum(text in each for each in lines) == 1 else None
