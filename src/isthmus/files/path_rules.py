"""Rules on paths in the syntax of ignore files, each for the paths below folders of its own.

A rule is about a path if it matches the path or a folder above it. Pure, but for :func:`followed`.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.files.ignore.git_pattern import TooComplexPattern, as_bytes, compile_line
from isthmus.files.ignore.ignore_file import IgnoreFile
from isthmus.record import record

KEPT_RULES = 512
"""Maximum number of sets of compiled rules that are cached."""
_FOLDS_CASE = sys.platform == "darwin"
"""Whether the usual file system opens a file by a name with other capitals."""


class PathPatternError(IsthmusError):
    """A pattern of paths cannot be used; the text says why."""


@record
class PathRule:
    """A rule: ``places`` are pairs of an absolute folder and a line of an ignore file for what is below it.

    ``where`` is the name of the rule in messages.
    """

    where: str
    places: tuple[tuple[str, str], ...]


@record
class PathAccess:
    """Rules on the paths that tools may use.

    Files of ``closed`` are neither read nor changed, and files of ``fixed`` are not changed. Files of ``unlisted`` are
    left out of listings and searches, because a user must be asked about each. Contents of ``asked`` are left out of
    searches, but for the absolute paths in ``agreed``. With ``asks_ignored`` so are contents of files that git ignores,
    but for made ones and the ignored ones of ``agreed_folders``, which are absolute paths.
    """

    closed: tuple[PathRule, ...] = ()
    fixed: tuple[PathRule, ...] = ()
    unlisted: tuple[PathRule, ...] = ()
    asked: tuple[PathRule, ...] = ()
    agreed: frozenset[str] = frozenset()
    asks_ignored: bool = False
    agreed_folders: frozenset[str] = frozenset()


class PathRules:
    """Compiled rules."""

    def __init__(self, rules: Iterable[PathRule]) -> None:
        lines: dict[str, list[str]] = {}
        self._rules = tuple(rules)
        for rule in self._rules:
            for folder, line in rule.places:
                lines.setdefault(_folded(folder), []).append(_folded(line))
        self._files = {folder: IgnoreFile(_data(found)) for folder, found in lines.items()}

    def find(self, path: str) -> PathRule | None:
        """Return a rule about an absolute path without ``..``, or about a folder above it; otherwise None."""
        if not any(self._is_about(folder, file, path) for folder, file in self._files.items()):
            return None
        if len(self._rules) == 1:
            return self._rules[0]
        return next((rule for rule in self._rules if compiled((rule,)).find(path) is not None), None)

    def find_any(self, paths: Iterable[str]) -> PathRule | None:
        """Return a rule about one of several paths; otherwise None."""
        return next((rule for path in paths if (rule := self.find(path)) is not None), None)

    def hides(self, path: str, name: str) -> bool:
        """Return whether a rule is about an entry itself; both end in a slash for a folder. Folders above are left."""
        for folder, file in self._files.items():
            relative = _below(folder, _folded(path))
            if relative and file.verdict(relative, _folded(name)):
                return True
        return False

    def _is_about(self, folder: str, file: IgnoreFile, path: str) -> bool:
        relative = _below(folder, _folded(path))
        return bool(relative) and any(file.verdict(part, name) for part, name in _prefixes(relative))


@lru_cache(maxsize=KEPT_RULES)
def compiled(rules: tuple[PathRule, ...]) -> PathRules:
    """Return compiled rules, which are kept for the next call."""
    return PathRules(rules)


def followed(path: str | Path) -> tuple[str, ...]:
    """Return an absolute path without ``..``, and the one that it leads to through symbolic links. Blocks."""
    return tuple(dict.fromkeys((os.path.normpath(path), os.path.realpath(path))))


def expand_home(path: str) -> Path:
    """Return a path in which ``~`` at the beginning is the user's home folder; unchanged if that is not known."""
    try:
        return Path(path).expanduser() if path == "~" or path.startswith("~/") else Path(path)
    except RuntimeError:
        return Path(path)


def check_line(line: str) -> None:
    """Check a line of an ignore file for use in a rule.

    Raises:
        PathPatternError: it is not a pattern, or too complex.
    """
    try:
        pattern = compile_line(as_bytes(line))
    except TooComplexPattern as error:
        raise PathPatternError("its pattern of paths is too long or has too many wildcards") from error
    if pattern is None or not pattern.ignores or "\n" in line or "\0" in line:
        raise PathPatternError("it is not a pattern of paths")


def _data(lines: Iterable[str]) -> bytes:
    return "\n".join(as_bytes(line) for line in lines).encode("latin-1")


def _folded(text: str) -> str:
    return text.lower() if _FOLDS_CASE else text


def _below(folder: str, path: str) -> str:
    """Return a path relative to a folder; empty if it is not below it."""
    start = folder.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else ""


def _prefixes(relative: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each folder above a path and the path itself, as a file and as a folder, with its name."""
    names = relative.split("/")
    for index, name in enumerate(names, 1):
        yield "/".join(names[:index]) + "/", name + "/"
    yield relative, names[-1]
