"""Searches a tree by one run of ripgrep, and shows what the rules of the workspace show.

Ripgrep follows no ignore file by itself: it gets the folders that are hidden, each by its whole path, and searches all
others. Each file with matches is then judged by the rules as they are now. So neither a difference between its rules
and ours nor an index that is a moment old can show a file, or hide one.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import IO

from isthmus.record import record
from isthmus.runtime.brief_work import briefly
from isthmus.tools.port.content import BINARY_SUFFIXES
from isthmus.tools.port.file_index import inside, is_binary_name
from isthmus.tools.port.folder_scan import LARGE_FILE_BYTES
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search import line_matcher
from isthmus.tools.search.glob_pattern import FileFilter, has_glob_syntax
from isthmus.tools.search.listing import FileListing
from isthmus.tools.search.search_engines import FileMatches, LineQuery, Ripgrep, TreeRun
from isthmus.tools.search.skipped_files import SkippedFiles

MAXIMUM_HIDDEN = 20_000
"""Maximum number of hidden folders and large files that ripgrep is told; it searches the rest, in vain."""
MANY_LINES = 5_000
"""Number of matching lines from which on the files are searched in order, so that the search ends with the first."""
MANY_BYTES = 32 * 1024 * 1024
"""Size in bytes of the output of ripgrep from which on the same is done."""
BATCH = 128
"""Number of files with matches that are judged at once."""
_SIMPLE_FILTER = re.compile(r"\*\.(?:\w+|\{\w+(?:,\w+)+\})", re.ASCII)
_SPECIAL = re.compile(r"([\\*?\[\]{}!# ])")


@record
class SearchedTree:
    """A tree to search. `shown` judges its files; `include` is the filter of a call as typed, empty for none."""

    workspace: Workspace
    listing: FileListing
    shown: ShownFiles
    include: str = ""


@dataclass
class _Selection:
    """The first matches by the order of paths, `wanted` lines and one more, among those that came so far."""

    wanted: int
    files: list[FileMatches] = field(default_factory=list[FileMatches])
    lines: int = 0

    def add(self, found: Iterable[FileMatches]) -> None:
        for file in found:
            self.files.append(file)
            self.lines += len(file.lines)
        if self.lines > 8 * (self.wanted + 1):
            self.cut()

    def cut(self) -> list[FileMatches]:
        """Forget what comes after the wanted lines, but for one, and return the rest in order."""
        self.files.sort(key=lambda file: file.path.parts)
        kept: list[FileMatches] = []
        self.lines = 0
        for file in self.files:
            if self.lines > self.wanted:
                break
            kept.append(file)
            self.lines += len(file.lines)
        self.files = kept
        return kept


async def search_tree(
    engine: Ripgrep, query: LineQuery, tree: SearchedTree, wanted: int, skipped: SkippedFiles
) -> Sequence[FileMatches] | None:
    """Return files with matches in the order of their paths, with more than `wanted` lines if there are more.

    None: ripgrep does not understand the expression, or not as Python does. Files that were left out come to `skipped`.

    Raises:
        ToolFailure: a line is too long, or ripgrep cannot be started.
    """
    if not engine.can_search(query):
        return None
    judge = _Judge(tree, skipped)
    with await briefly(_told, tree) as told:
        for in_order in (False, True):
            options = _options(tree, in_order=in_order)
            run = engine.run_below(query, tree.listing.place, told, options, _narrowed(tree))
            selection = await _select(run, judge, wanted, in_order=in_order)
            if selection is None:
                continue
            if not run.is_complete and selection.lines <= wanted:
                return None
            await briefly(judge.look_at_unreadable, run.unreadable)
            return selection.cut()
    return None


async def _select(run: TreeRun, judge: "_Judge", wanted: int, *, in_order: bool) -> _Selection | None:
    """Return the first matches of a run; None if there are so many that the files must be searched in order."""
    selection = _Selection(wanted)
    waiting: list[tuple[str, list[tuple[int, str]]]] = []
    lines = 0
    async with aclosing(run.files()) as files:
        async for path, found in files:
            waiting.append((path, found))
            lines += len(found)
            if len(waiting) < (BATCH // 8 if in_order else BATCH):
                continue
            selection.add(await briefly(judge.allowed, waiting))
            waiting = []
            if in_order and selection.lines > wanted:
                return selection
            if not in_order and (lines > max(MANY_LINES, 4 * wanted) or run.received > MANY_BYTES):
                return None
    selection.add(await briefly(judge.allowed, waiting))
    return selection


class _Judge:
    """Decides which files with matches are shown. Blocking."""

    def __init__(self, tree: SearchedTree, skipped: SkippedFiles) -> None:
        self._tree = tree
        self._place = tree.listing.place
        self._skipped = skipped
        self._filter = FileFilter(tree.include) if tree.include else None

    def allowed(self, found: Iterable[tuple[str, list[tuple[int, str]]]]) -> list[FileMatches]:
        """Return the files that are shown; `found` are paths relative to the tree, and matching lines."""
        return [FileMatches(self._place / path, tuple(lines)) for path, lines in found if self._is_shown(path)]

    def look_at_unreadable(self, paths: Iterable[str]) -> None:
        """Note the files and folders that could not be read, but for hidden ones."""
        for path in paths:
            is_folder = (self._place / path).is_dir()
            if is_folder and self._tree.shown.shows(path, is_folder=True):
                self._skipped.unreadable.add(f"{self._shown(path)}/")
            elif not is_folder and self._takes(path):
                self._skipped.unreadable.add(self._shown(path))

    def _shown(self, path: str) -> str:
        return self._tree.listing.shown_prefix + path

    def _takes(self, path: str) -> bool:
        is_left_out = is_binary_name(path) or (self._filter is not None and not self._filter.matches(path))
        if is_left_out or not self._tree.shown.shows(path):
            return False
        return self._tree.workspace.shows(self._place / path)

    def _is_shown(self, path: str) -> bool:
        if not self._takes(path):
            return False
        try:
            status = os.lstat(self._place / path)
            if not stat.S_ISREG(status.st_mode):
                return False
            if status.st_size > LARGE_FILE_BYTES:
                self._skipped.too_large.add(self._shown(path))
                return False
            with (self._place / path).open("rb") as file:
                is_binary = line_matcher.is_binary(file.read(line_matcher.SAMPLE_BYTES))
        except OSError:
            return False
        if is_binary:
            self._skipped.not_text.add(self._shown(path))
        return not is_binary


def _options(tree: SearchedTree, *, in_order: bool) -> tuple[str, ...]:
    simple = (f"--glob={tree.include}",) if _SIMPLE_FILTER.fullmatch(tree.include) else ()
    # Where large files are not known, ripgrep looks at the size of each, which takes its time.
    bounded = () if tree.listing.knows_large else (f"--max-filesize={LARGE_FILE_BYTES}",)
    return (*simple, *bounded, *(("--sort=path",) if in_order else ()))


def _narrowed(tree: SearchedTree) -> str:
    """Return the folder, relative to the tree, that the filter begins with; empty if it does not begin with one."""
    folders = tree.include.split("/")[:-1]
    plain = list(takewhile(lambda name: name not in ("", ".", "..") and not has_glob_syntax(name), folders))
    path = "/".join(plain)
    is_known = tree.listing.is_whole and tree.listing.index.at(inside(tree.listing.start, path)) is not None
    return path if plain and is_known else ""


def _told(tree: SearchedTree) -> IO[bytes]:
    """Return a temporary file in the syntax of ignore files, of what ripgrep need not look at."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    lines = [".git"]
    for suffix in BINARY_SUFFIXES:
        # A folder may have any name.
        lines += [f"*{suffix}", f"*{suffix.upper()}", f"!*{suffix}/", f"!*{suffix.upper()}/"]
    for number, line in enumerate(_hidden(tree.listing)):
        if number >= MAXIMUM_HIDDEN:
            break
        lines.append(line)
    file.write("\n".join((*lines, "")).encode("utf-8"))
    file.seek(0)
    return file


def _hidden(listing: FileListing) -> Iterator[str]:
    """Yield the whole paths of hidden folders and large files below the start, as lines of an ignore file."""
    for relative, _, folder in listing.folders():
        above = relative.rstrip("/")
        for name, slash in (*((name, "/") for name in folder.hidden), *((name, "") for name in folder.large or ())):
            path = inside(above, name)
            if path.isprintable():
                yield "/" + _SPECIAL.sub(r"\\\1", path) + slash


def large_files(listing: FileListing, include: str) -> Iterator[tuple[str, Path]]:
    """Yield the large files of a listing that a search would have taken, as shown and by their places."""
    chosen = FileFilter(include) if include else None
    for relative, shown, folder in listing.folders():
        for name in folder.large or ():
            if chosen is None or chosen.matches(relative + name):
                yield shown + name, Path(f"{listing.place}/{relative}{name}")


def binary_names(listing: FileListing, include: str) -> int:
    """Return the number of files of a listing that a search leaves out by their names."""
    chosen = FileFilter(include) if include else None
    count = 0
    for relative, _, folder in listing.folders():
        if chosen is None or not folder.binary:
            count += folder.binary
        else:
            count += sum(map(is_binary_name, chosen.matching_names(relative, folder.files())))
    return count
