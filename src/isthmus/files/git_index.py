"""The files that git tracks, read from the index of a repository without running git.

Programs that a repository's configuration names would run with git. The index has the versions 2 to 4; an index that is
split, or that has another form, tells nothing.
"""

import os
from pathlib import Path

from isthmus.files.atomic import read_regular

MAXIMUM_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of an index that is read."""
_FIXED, _EXTENDED, _LENGTH = 62, 0x4000, 20


def tracked_files(folder: Path) -> frozenset[str] | None:
    """Return the absolute paths of the tracked files of the repository around a folder, an absolute path.

    Without a repository there are none. None if the index cannot be read.
    """
    top = next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    if top is None:
        return frozenset()
    try:
        git = top / ".git"
        if git.is_file():
            git = top / read_regular(git, 4096).decode().removeprefix("gitdir:").strip()
        if not (git / "index").exists():
            return frozenset()
        names = tracked_names(read_regular(git / "index", MAXIMUM_BYTES))
    except (OSError, ValueError):
        return None
    return None if names is None else frozenset(f"{top}/{name}" for name in names)


def tracked_names(index: bytes) -> list[str] | None:
    """Return the paths in an index, relative to its repository; None if it is not understood. Pure."""
    version = int.from_bytes(index[4:8], "big")
    if index[:4] != b"DIRC" or version not in (2, 3, 4):
        return None
    names: list[str] = []
    at, name = 12, b""
    for _ in range(int.from_bytes(index[8:12], "big")):
        flags = int.from_bytes(index[at + 60 : at + 62], "big")
        start = at + _FIXED + (2 if flags & _EXTENDED else 0)
        if version == 4:
            start, kept = _varint(index, start)
            name = name[: len(name) - kept]
        else:
            name = b""
        end = index.find(b"\0", start)
        if end < 0:
            return None
        name += index[start:end]
        names.append(os.fsdecode(name))
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
    while at + 8 <= len(index) - _LENGTH:
        if index[at : at + 4] in (b"link", b"sdir"):  # the rest is in another file, or folders stand for files
            return None
        at += 8 + int.from_bytes(index[at + 4 : at + 8], "big")
    return names


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the place behind a number as git writes offsets, and the number."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return at + 1, value
