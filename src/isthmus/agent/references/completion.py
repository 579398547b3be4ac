"""Completes references to files and folders from the index of the workspace, also while it is still being listed.

What is best is found first and the search is bounded in time, so that a tree of a million files is answered at once.
Blocking; call it in a thread.
"""

import re
import time
from bisect import insort
from collections.abc import Iterable, Iterator
from contextlib import suppress

from isthmus.agent.references.syntax import REFERENCE_BEGIN, unescaped
from isthmus.slash_commands.tree import Completion
from isthmus.text.units import show_count
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.file_index import FileIndex, IndexedFolder
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.port.workspace import Workspace

MAXIMUM_COMPLETIONS = 50
REFRESH_SECONDS = 0.1
"""Maximum wait for the index in seconds; after it the answer is from what was listed before."""
FIRST_SECONDS = 0.2
"""The same for a tree that was never listed as a whole."""
FRESH_SECONDS = 1.0
"""Age in seconds up to which an index is taken as it is."""
SCORING_SECONDS = 0.15
"""Maximum time in seconds for comparing paths with what was typed."""
_START, _DEEPER, _NAME, _WITHIN, _LETTERS = range(5)
"""Ways in which typed text fits a path: it begins an entry of a folder, or a deeper one; it begins a name; it is in it;
its letters come in their order."""


def complete_path(line: str, workspace: Workspace) -> list[Completion]:
    """Return whole lines that complete a reference to a file or folder at the end of a line, best first.

    The letters that are typed must occur in the path in their order; ignored files are not offered. While the tree is
    being listed for the first time, the last completion adds nothing, and says so.
    """
    starts = [match.end() for match in REFERENCE_BEGIN.finditer(line)]
    if not starts or re.search(r"(?<!\\)\s", line[starts[-1] :]):
        return []
    typed = unescaped(line[starts[-1] :])
    if "\0" in typed or typed.startswith(("/", "~", '"')):
        return []
    kept = workspace.kept_index(workspace.root)
    if not kept.is_newer_than(FRESH_SECONDS):
        with suppress(TimeoutError):
            kept.refreshed().result(REFRESH_SECONDS if kept.index.is_listed else FIRST_SECONDS)
    index, is_partial = kept.index, not kept.index.is_listed
    found: list[str] = []
    for folder in _typed_folders(typed):
        rest = typed[len(folder) + 1 :]
        if is_partial and (listed_now := _listed_now(workspace, folder)) is not None:
            found = [f"{folder}/{path}" for path in best_paths(listed_now, rest)]
            break
        if not is_partial and index.at(folder) is not None:
            found = [f"{folder}/{path}" for path in best_paths(index, rest, folder)]
            break
    if len(found) < MAXIMUM_COMPLETIONS:
        found += best_paths(index, typed)
    shown = ShownFiles(workspace, workspace.root)
    paths = [
        path
        for path in dict.fromkeys(found)
        if path.isprintable()
        and path != f"{typed.rstrip('/')}/"
        and shown.shows(path.rstrip("/"), is_folder=path.endswith("/"))
    ]
    begin = line[: starts[-1]]
    lines = [begin + re.sub(r"([\s\\\"'`<>|])", r"\\\1", path) for path in paths[: MAXIMUM_COMPLETIONS - is_partial]]
    completions = [Completion(completed, "") for completed in lines]
    if is_partial:
        listed = show_count(index.count, "file")
        completions.append(Completion(line, f"still looking through the folder: {listed} so far"))
    return completions


def _typed_folders(typed: str) -> Iterator[str]:
    """Yield the folders that a typed path may begin with, the deepest first."""
    folder = typed.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _listed_now(workspace: Workspace, folder: str) -> FileIndex | None:
    """Return an index of a typed folder, of what a moment suffices for; None if it is not one of the workspace."""
    with suppress(ToolFailure):
        place = workspace.open_path(folder)
        if place == workspace.root / folder and place.is_dir():
            index = workspace.index_below(place)
            ends = time.monotonic() + REFRESH_SECONDS
            index.refresh(lambda: time.monotonic() > ends)
            return index
    return None


def best_paths(index: FileIndex, typed: str, start: str = "") -> list[str]:
    """Return the paths of files and folders below `start` that fit what was typed best, relative to it, best first.

    Folders end in a slash.
    """
    wanted = typed.casefold()
    best = _Best()
    ends = time.monotonic() + SCORING_SECONDS
    skipped = len(start) + 1 if start else 0
    every = index.folder_paths()
    keys = sorted((key for key in every if not start or key == start or key.startswith(f"{start}/")), key=len)
    for passes in (_likely_names, _names_with_letters):
        for key in keys:
            if (folder := index.at(key)) is None:
                continue
            if time.monotonic() > ends:
                break
            base = f"{key[skipped:]}/" if key != start else ""
            if base and (score := _score(typed, wanted, base)) is not None:
                best.add((score, len(base), base))
            for name in passes(folder, base, typed, wanted, best):
                path = base + name
                if (score := _score(typed, wanted, path)) is not None:
                    best.add((score, len(path), path))
        if len(best.items) == MAXIMUM_COMPLETIONS:
            break
    return [path for _, _, path in best.items]


class _Best:
    """The best paths so far, by score, length and name."""

    def __init__(self) -> None:
        self.items: list[tuple[int, int, str]] = []
        self._known: set[str] = set()

    def may_take(self, item: tuple[int, int, str]) -> bool:
        """Return whether a path that is not better than `item` could be one of the best."""
        return len(self.items) < MAXIMUM_COMPLETIONS or item < self.items[-1]

    def add(self, item: tuple[int, int, str]) -> None:
        """Add a path if it is one of the best."""
        if item[2] in self._known or not self.may_take(item):
            return
        insort(self.items, item)
        self._known.add(item[2])
        if len(self.items) > MAXIMUM_COMPLETIONS:
            self._known.remove(self.items.pop()[2])


def _likely_names(folder: IndexedFolder, base: str, typed: str, wanted: str, best: _Best) -> Iterable[str]:
    """Return names of a folder's files, those that contain what was typed among them, unless all others are better."""
    folded = base.casefold()
    head, slash, tail = wanted.rpartition("/")
    if folded.startswith(wanted):
        low = _START if len(base) <= len(typed) else _DEEPER
    elif wanted.startswith(folded):
        low, tail = _START, wanted[len(folded) :]
    else:
        low = _WITHIN if slash else _NAME
    if not folder.count or not best.may_take((low, len(base) + 1, base)):
        return ()
    if wanted not in folded:
        is_spanning = not slash or folded.endswith(f"{head}/")
        if not is_spanning or tail not in folder.names.casefold():
            return ()
    names = folder.files()
    shortest = min(map(len, names))
    return names if best.may_take((low, len(base) + shortest, base)) else ()


def _names_with_letters(folder: IndexedFolder, base: str, typed: str, wanted: str, best: _Best) -> Iterable[str]:
    """Return names of a folder's files, those that have the typed letters in their order among them."""
    if not folder.count or not best.may_take((_LETTERS, len(base) + 1, base)):
        return ()
    rest = wanted
    for letter in base.casefold():
        if rest.startswith(letter):
            rest = rest[1:]
    names = folder.names.casefold()
    return folder.files() if all(letter in names for letter in set(rest)) else ()


def _score(typed: str, wanted: str, path: str) -> int | None:
    """Return how badly a path fits what was typed, 0 best; None if it does not. `wanted` is the folded text."""
    whole = path.casefold()
    if whole.startswith(wanted):
        return _START if "/" not in path[len(typed) :].rstrip("/") else _DEEPER
    name = whole.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return _NAME
    if wanted in whole:
        return _WITHIN
    letters = iter(whole)
    return _LETTERS if all(letter in letters for letter in wanted) else None
