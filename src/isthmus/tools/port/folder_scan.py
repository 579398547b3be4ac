"""Reads one folder from the disk for the index of files: names, and a stamp by which changes are seen."""

import os
import stat
from collections.abc import Callable, Iterable
from typing import TypeAlias

from isthmus.record import record

LARGE_FILE_BYTES = 10 * 1024 * 1024
"""Size in bytes above which a file is large; searches leave such files out."""
RULE_NAMES = frozenset({".git", ".gitignore", ".geminiignore"})
"""Names of entries that change which files are shown."""

FolderStamp: TypeAlias = tuple[int, int]
"""Time of the last change in nanoseconds, and inode. Nobody can set the first back, unlike the time of modification."""


@record
class ScannedFolder:
    """The entries of a folder, in any order: regular files and folders, without links.

    ``special`` are the entries of any kind whose names are in RULE_NAMES. ``stamp`` was taken before the folder was
    read; None if the folder cannot be read.
    """

    stamp: FolderStamp | None
    files: list[str]
    folders: list[str]
    special: frozenset[str] = frozenset()


ScanFolder: TypeAlias = Callable[[str], ScannedFolder]
"""Reads the folder at an absolute path."""
StampFolder: TypeAlias = Callable[[str], FolderStamp | None]
"""Returns the stamp of the folder at an absolute path; None if it is something else."""


def scan_folder(path: str) -> ScannedFolder:
    """Return the entries of the folder at an absolute path; none if it cannot be read."""
    files: list[str] = []
    folders: list[str] = []
    special: list[str] = []
    stamp = folder_stamp(path)
    try:
        with os.scandir(path) as found:
            for entry in found:
                name = entry.name
                if name in RULE_NAMES:
                    special.append(name)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(name)
    except OSError:
        stamp = None
    return ScannedFolder(stamp, files, folders, frozenset(special))


def folder_stamp(path: str) -> FolderStamp | None:
    """Return the stamp of the folder at an absolute path; None if it is something else, or a link to a folder."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_ctime_ns, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def large_files_of(path: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of files in the folder at an absolute path that have more than LARGE_FILE_BYTES."""
    large: list[str] = []
    for name in names:
        try:
            if os.lstat(f"{path}/{name}").st_size > LARGE_FILE_BYTES:
                large.append(name)
        except OSError:
            continue
    return tuple(large)
