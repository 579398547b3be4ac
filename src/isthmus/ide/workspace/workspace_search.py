"""Finds files of a workspace by words of their paths, for the user; never a file that is hidden from agents.

Beside :mod:`isthmus.ide.workspace.privacy`, files that ``.gitignore`` names are left out, because they are many and
seldom wanted. Links to folders are not followed, and links to files only if they stay in the workspace. Blocks.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from isthmus.files.ignore.ignore_file import IgnoreScope
from isthmus.ide.workspace.privacy import IGNORE_FILES, HiddenFiles
from isthmus.ide.workspace.workspace_files import is_inside
from isthmus.record import record

MAXIMUM_ENTRIES: Final = 50_000
"""Maximum number of entries of folders in one search."""
SEARCH_SECONDS: Final = 1.0
"""Time in seconds after which a search ends with what it has."""
_SKIPPED: Final = frozenset({".git", ".hg", ".svn"})


@record
class WorkspaceFile:
    """A file: its absolute path, and its path in its workspace folder."""

    path: str
    relative: str


@record
class FoundFiles:
    """Files that fit, the best first. ``is_partial`` is true if there are more, or the search ended early."""

    files: tuple[WorkspaceFile, ...]
    is_partial: bool


def find_files(
    folders: Sequence[str], words: Sequence[str], limit: int, clock: Callable[[], float] = time.monotonic
) -> FoundFiles:
    """Return up to ``limit`` files whose relative paths contain all words, in any case; without words the topmost.

    Files with all words in their name come first, then those higher up.
    """
    wanted = [word.casefold() for word in words]
    hidden = HiddenFiles(folders)
    walk = _Walk(clock() + SEARCH_SECONDS, clock)
    found: list[tuple[bool, int, WorkspaceFile]] = []
    for folder in folders:
        for file, is_link in walk.files(folder):
            path = file.relative.casefold()
            if not all(word in path for word in wanted):
                continue
            if hidden.hides(file.path) or (is_link and not is_inside(file.path, folders)):
                continue
            name = path.rpartition("/")[2]
            found.append((not all(word in name for word in wanted), path.count("/"), file))
            if not wanted and len(found) > limit:
                break
    found.sort(key=lambda entry: (entry[0], entry[1], entry[2].relative))
    return FoundFiles(tuple(file for _, _, file in found[:limit]), walk.has_ended_early or len(found) > limit)


class _Walk:
    """A walk over folders, one level after the other, that ends after a number of entries or at a time."""

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self._deadline = deadline
        self._clock = clock
        self._entries = 0
        self.has_ended_early = False

    def files(self, top: str) -> "Iterator[tuple[WorkspaceFile, bool]]":
        """Yield the files below a folder, and whether each is a link."""
        scopes = tuple(IgnoreScope(name) for name in (".gitignore", *IGNORE_FILES))
        waiting = deque([(top, "", scopes)])
        while waiting:
            folder, relative, around = waiting.popleft()
            entries = self._scan(folder)
            names = frozenset(entry.name for entry in entries)
            inside = tuple(scope.inside(Path(folder), relative, names) for scope in around)
            for entry in entries:
                own = relative + entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                end = "/" if is_folder else ""
                if entry.name in _SKIPPED or any(scope.ignores(own + end, entry.name + end) for scope in inside):
                    continue
                if is_folder:
                    waiting.append((entry.path, own + "/", inside))
                elif _is_file(entry) and _is_unicode(entry.name):
                    yield WorkspaceFile(entry.path, own), entry.is_symlink()
            if self.has_ended_early:
                return

    def _scan(self, folder: str) -> "list[os.DirEntry[str]]":
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    self._entries += 1
                    if self._entries > MAXIMUM_ENTRIES or (self._entries % 256 == 0 and self._is_late()):
                        self.has_ended_early = True
                        break
                    entries.append(entry)
        except OSError:
            return []
        if self._is_late():
            self.has_ended_early = True
        return sorted(entries, key=lambda entry: entry.name)

    def _is_late(self) -> bool:
        return self._clock() > self._deadline


def _is_file(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
