"""An index of the files below a folder that the ignore files show, for trees of a million files.

The names of a folder's files are one text, so that a million files take about 20 MB. The first listing goes through the
tree, the folders near the top first; what it has found so far can be asked meanwhile. Later ones take the stamp of each
folder, and read again those that have changed, and those whose ignore files have. Blocking; call it in a thread.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.files.stamps import UNSETTLED_NANOSECONDS, Stamps, stamp_of
from isthmus.record import record
from isthmus.tools.port.content import BINARY_SUFFIXES
from isthmus.tools.port.folder_scan import (
    FolderStamp,
    ScanFolder,
    StampFolder,
    folder_stamp,
    large_files_of,
    scan_folder,
)

if TYPE_CHECKING:
    from isthmus.tools.port.workspace import Visibility

MAXIMUM_FOLDERS = 200_000
"""Maximum number of folders of an index; folders beyond it are not listed."""
MAXIMUM_BYTES = 64 * 1024 * 1024
"""Maximum size of an index in characters of names, folders counted with FOLDER_BYTES each."""
FOLDER_BYTES = 300
MAXIMUM_SECONDS = 120.0
"""Maximum time of the first listing; what is not listed until then is left out."""


@record
class IndexedFolder:
    """A folder of an index. `names` has the names of its shown files, sorted and joined by NUL.

    `count` is their number, and `binary` how many of them have names of files that are not text. `large` are the names
    of shown large text files; None as long as nobody has asked for them. `folders` are the names of the shown folders,
    and `hidden` of the others but ``.git``.
    """

    stamp: FolderStamp | None
    names: str
    count: int
    folders: tuple[str, ...]
    hidden: tuple[str, ...]
    large: tuple[str, ...] | None
    binary: int
    special: frozenset[str]

    def files(self) -> list[str]:
        """Return the names of the shown files, sorted."""
        return self.names.split("\0") if self.count else []

    @property
    def size(self) -> int:
        """Size in characters, with an allowance for the record."""
        return FOLDER_BYTES + len(self.names) + sum(map(len, self.folders)) + sum(map(len, self.hidden))


@dataclass
class _Listed:
    """Listed folders, and rules, by path: relative and without a slash at the end, and empty for the top."""

    folders: dict[str, IndexedFolder] = field(default_factory=dict[str, IndexedFolder])
    rules: "dict[str, Visibility]" = field(default_factory=dict[str, "Visibility"])
    """Rules inside the folders that have an ignore file or are a repository, and inside the top."""
    ignore_files: dict[str, Stamps] = field(default_factory=dict[str, Stamps])
    count: int = 0
    size: int = 0


class FileIndex:
    """The shown files below `folder`, a resolved path.

    Args:
        folder: the top of the index.
        prefix: the path from the folder of the workspace to it, empty or with a final slash.
        rules: returns the rules above `folder`, without its own ignore files.
        scan: reads a folder.
        stamp: stamps a folder.
    """

    def __init__(
        self,
        folder: Path,
        prefix: str,
        rules: "Callable[[], Visibility]",
        *,
        scan: ScanFolder = scan_folder,
        stamp: StampFolder = folder_stamp,
    ) -> None:
        self.folder = folder
        self.has_ended_early = False
        """Whether the tree has more than an index may have."""
        self.is_listed = False
        """Whether the whole tree was listed."""
        self._prefix = prefix
        self._find_rules = rules
        self._scan = scan
        self._stamp = stamp
        self._top = str(folder).rstrip("/")
        self._refreshing = threading.Lock()
        self._listed = _Listed()
        self._around: Visibility | None = None
        self._above: tuple[Stamps, tuple[bool, ...]] | None = None

    @property
    def count(self) -> int:
        """Number of files listed so far."""
        return self._listed.count

    @property
    def size(self) -> int:
        """Size of the index in characters, about one byte each."""
        return self._listed.size

    def at(self, key: str) -> IndexedFolder | None:
        """Return a shown folder by its path below the top, empty for the top; None if it is not listed."""
        return self._listed.folders.get(key)

    def folder_paths(self) -> list[str]:
        """Return the paths of the folders listed so far, in the order in which they were listed."""
        return list(self._listed.folders)

    def folders(self, start: str = "") -> Iterator[tuple[str, IndexedFolder]]:
        """Yield the folder `start` and all shown ones below it, each before what is below it, by name."""
        listed = self._listed.folders
        waiting = [start]
        while waiting:
            key = waiting.pop()
            folder = listed.get(key)
            if folder is None:  # not listed yet, or removed meanwhile
                continue
            yield key, folder
            waiting.extend(inside(key, name) for name in reversed(folder.folders))

    def paths(self, start: str = "") -> Iterator[str]:
        """Yield the paths of the files below `start`, relative to the top, sorted by the names in them."""
        listed = self._listed.folders
        waiting = [_entries(start, listed.get(start))]
        while waiting:
            for key, is_folder in waiting[-1]:
                if is_folder:
                    waiting.append(_entries(key, listed.get(key)))
                    break
                yield key
            else:
                waiting.pop()

    def refresh(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Bring the index up to date. One call at a time works, others wait. `should_stop` ends it early."""
        with self._refreshing:
            if self.is_listed and self._is_above_unchanged():
                self._update(should_stop)
            else:
                self._list_anew(should_stop)

    def find_large(self, start: str = "", should_stop: Callable[[], bool] = lambda: False) -> bool:
        """Find the large files below `start` in folders where they are not known; False if it was stopped.

        The status of each file is read, which takes longer than the listing.
        """
        for key, folder in self.folders(start):
            if should_stop():
                return False
            if folder.large is None:
                texts = (name for name in folder.files() if not is_binary_name(name))
                found = large_files_of(self._path(key), texts)
                with self._refreshing:  # only for a moment, so that a refresh does not wait
                    if self._listed.folders.get(key) is folder:
                        self._listed.folders[key] = replace(folder, large=found)
        return True

    def _list_anew(self, should_stop: Callable[[], bool]) -> None:
        at = time.time_ns()
        above = tuple((path, stamp_of(path)) for path in self._rule_files_above())
        self._above = Stamps(above, at), self._repositories()
        self._around = self._find_rules()
        listed = _Listed()
        if not self.is_listed:
            self._listed = listed  # so that it can be asked meanwhile
        self.has_ended_early = False
        if self._enter_all(listed, [("", self._around)], should_stop):
            self._listed, self.is_listed = listed, True

    def _update(self, should_stop: Callable[[], bool]) -> None:
        listed = self._listed
        changed_rules = [key for key, stamps in listed.ignore_files.items() if not stamps.are_current()]
        changed = set(changed_rules)
        for key, known in list(listed.folders.items()):
            if should_stop():
                return
            if known.stamp is None or self._stamp(self._path(key)) != known.stamp:
                changed.add(key)
        before = dict.fromkeys(changed_rules)
        for key in sorted(changed, key=len):
            if should_stop():
                return
            known = listed.folders.get(key)
            if known is None:  # removed, with a folder above it
                continue
            children = self._enter(listed, key, self._rules_around(listed, key))
            new = listed.folders[key]
            if key in before or new.special != known.special:
                for name in known.folders:
                    self._drop(listed, inside(key, name))
            else:
                for name in set(known.folders).difference(new.folders):
                    self._drop(listed, inside(key, name))
                children = [child for child in children if child[0] not in listed.folders]
            self._enter_all(listed, children, should_stop)

    def _enter_all(
        self, listed: _Listed, waiting: "Iterable[tuple[str, Visibility]]", should_stop: Callable[[], bool]
    ) -> bool:
        """List folders and all below them, and return whether it was not stopped."""
        queue = deque(waiting)
        ends = time.monotonic() + MAXIMUM_SECONDS
        while queue:
            if should_stop():
                return False
            is_full = len(listed.folders) >= MAXIMUM_FOLDERS or listed.size > MAXIMUM_BYTES
            if is_full or time.monotonic() > ends:
                self.has_ended_early = True
                return True
            queue.extend(self._enter(listed, *queue.popleft()))
        return True

    def _enter(self, listed: _Listed, key: str, around: "Visibility") -> "list[tuple[str, Visibility]]":
        """List one folder, and return the shown folders in it with the rules around them."""
        path = self._path(key)
        at = time.time_ns()
        scanned = self._scan(path)
        relative = self._prefix + _with_slash(key)
        visible = around.inside(Path(path), relative, scanned.special)
        if visible.has_rules:
            files = sorted(name for name in scanned.files if not visible.hides(relative + name, name))
            shown = {name for name in scanned.folders if not visible.hides(f"{relative}{name}/", f"{name}/")}
        else:
            files = sorted(name for name in scanned.files if name != ".git")
            shown = {name for name in scanned.folders if name != ".git"}
        is_settled = scanned.stamp is not None and at - scanned.stamp[0] > UNSETTLED_NANOSECONDS
        folder = IndexedFolder(
            scanned.stamp if is_settled else None,
            "\0".join(files),
            len(files),
            tuple(sorted(shown)),
            tuple(name for name in scanned.folders if name not in shown and name != ".git"),
            None,
            sum(map(is_binary_name, files)),
            scanned.special,
        )
        self._forget(listed, key)
        listed.folders[key] = folder
        listed.count += folder.count
        listed.size += folder.size
        if scanned.special or not key:
            listed.rules[key] = visible
        if names := scanned.special - {".git"}:
            paths = tuple(Path(path, name) for name in names)
            listed.ignore_files[key] = Stamps(tuple((name, stamp_of(name)) for name in paths), at)
        return [(inside(key, name), visible) for name in folder.folders]

    def _drop(self, listed: _Listed, key: str) -> None:
        """Remove a folder and all below it."""
        waiting = [key]
        while waiting:
            key = waiting.pop()
            if (folder := listed.folders.get(key)) is not None:
                waiting.extend(inside(key, name) for name in folder.folders)
                self._forget(listed, key)

    @staticmethod
    def _forget(listed: _Listed, key: str) -> None:
        if (folder := listed.folders.pop(key, None)) is not None:
            listed.count -= folder.count
            listed.size -= folder.size
            listed.rules.pop(key, None)
            listed.ignore_files.pop(key, None)

    def _rules_around(self, listed: _Listed, key: str) -> "Visibility":
        """Return the rules inside the nearest folder above `key` that has some of its own; others change nothing."""
        above = key
        while above:
            above = above.rpartition("/")[0]
            if (found := listed.rules.get(above)) is not None:
                return found
        return self._around or self._find_rules()

    def _path(self, key: str) -> str:
        return f"{self._top}/{key}" if key else self._top or "/"

    def _is_above_unchanged(self) -> bool:
        if self._above is None:
            return False
        stamps, repositories = self._above
        return repositories == self._repositories() and stamps.are_current()

    def _rule_files_above(self) -> Iterator[Path]:
        yield self.folder / ".git" / "info" / "exclude"
        for above in self.folder.parents:
            yield above / ".gitignore"
            yield above / ".geminiignore"
            yield above / ".git" / "info" / "exclude"

    def _repositories(self) -> tuple[bool, ...]:
        return tuple(os.path.lexists(above / ".git") for above in (self.folder, *self.folder.parents))


def inside(key: str, name: str) -> str:
    """Return the path of an entry of the folder `key`."""
    return f"{key}/{name}" if key else name


def is_binary_name(name: str) -> bool:
    """Return whether a name is one of a file that is not text."""
    _, dot, suffix = name.rpartition(".")
    return f"{dot}{suffix}".lower() in BINARY_SUFFIXES


def _with_slash(key: str) -> str:
    return f"{key}/" if key else ""


def _entries(key: str, folder: IndexedFolder | None) -> Iterator[tuple[str, bool]]:
    """Yield the paths of the entries of a folder by name, and whether each is a folder."""
    if folder is not None:
        named = [(name, False) for name in folder.files()] + [(name, True) for name in folder.folders]
        for name, is_folder in sorted(named):
            yield inside(key, name), is_folder
