"""Ignore files (.gitignore, .geminiignore) with git's rules: per folder, the deepest and then the last match counts.

A scope contains the rules for one folder; a walk derives the scope of a folder from its parent's, and must not enter an
ignored folder. Verdicts are cached, by name for patterns without a slash and by path for the others. Limits prevent
slow matching: the part of a file or a scope above its limit has no effect, which is logged once.
"""

import logging
import os
from collections.abc import Callable, Container
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from isthmus.files.atomic import reader_of, require_regular
from isthmus.files.ignore.git_pattern import (
    MAXIMUM_LENGTH,
    MAXIMUM_WILDCARDS,
    GitPattern,
    PathMatcher,
    TooComplexPattern,
    as_bytes,
    compile_line,
)
from isthmus.record import record
from isthmus.text.visible import printable

_log = logging.getLogger(__name__)

MAXIMUM_IGNORE_FILE = 200_000
"""Maximum size in bytes of an ignore file, since every rule is compared with every name. Usual ones have hundreds."""
MAXIMUM_LINES = 10_000
"""Maximum number of lines of an ignore file, for the same reason."""
MAXIMUM_PATTERNS = 2_000
"""Maximum number of lines with wildcards, which take longer to compare."""
MAXIMUM_SCOPE = 5 * MAXIMUM_IGNORE_FILE
"""Maximum size in bytes of all ignore files that apply in one folder: each folder above it may have one."""
MAXIMUM_ANSWERS = 10_000
"""Maximum number of cached verdicts of one ignore file; above it the cache is cleared."""
KEPT_FILES = 16
"""Maximum number of compiled ignore files that are cached, by content: every opened path needs the same ones."""
MAXIMUM_LOGGED = 1_000
"""Maximum number of ignore files whose problems are logged."""
_logged: set[Path] = set()

_Answer = TypeVar("_Answer")


class IgnoreFile:
    """The rules of one ignore file, for paths relative to its folder.

    ``problems`` explain which parts have no effect; ``size`` is the number of bytes that have one.
    """

    def __init__(self, data: bytes) -> None:
        self.size = min(len(data), MAXIMUM_IGNORE_FILE)
        text = data[: self.size].removeprefix(b"\xef\xbb\xbf").decode("latin-1")
        lines = text.split("\n", MAXIMUM_LINES)
        problems: list[str] = []
        if len(data) > MAXIMUM_IGNORE_FILE:
            problems.append(f"only its first {MAXIMUM_IGNORE_FILE} bytes have an effect")
            lines.pop()
        elif len(lines) > MAXIMUM_LINES and lines.pop():
            problems.append(f"only its first {MAXIMUM_LINES} lines have an effect")
        too_complex: list[int] = []
        patterns = 0
        self._literal_names: dict[str, list[tuple[int, GitPattern]]] = {}
        self._names: list[tuple[int, GitPattern]] = []
        self._paths: list[tuple[int, GitPattern, PathMatcher]] = []
        for number, line in enumerate(lines, 1):
            try:
                rule = compile_line(line)
            except TooComplexPattern:
                too_complex.append(number)
                continue
            if rule is None:
                continue
            patterns += not rule.is_literal
            if patterns > MAXIMUM_PATTERNS:
                problems.append(
                    f"from line {number} on it has no effect: over {MAXIMUM_PATTERNS} patterns with wildcards"
                )
                break
            if rule.matches_path is not None:
                self._paths.append((number, rule, rule.matches_path))
            elif rule.is_literal:
                self._literal_names.setdefault(rule.name, []).append((number, rule))
            else:
                self._names.append((number, rule))
        self._names.reverse()
        self._paths.reverse()
        if too_complex:
            others = f" and {len(too_complex) - 1} more" if len(too_complex) > 1 else ""
            problems.append(
                f"line {too_complex[0]}{others} without effect: a pattern may have {MAXIMUM_LENGTH} bytes"
                f" and {MAXIMUM_WILDCARDS} wildcards"
            )
        self.problems = tuple(problems)
        self._by_name: dict[str, tuple[int, bool | None]] = {}
        self._by_path: dict[str, bool | None] = {}

    def verdict(self, path: str, name: str) -> bool | None:
        """Return whether the entry is ignored; None if no rule matches. Both strings end in a slash for a folder."""
        if not self._paths:
            return self._verdict_by_name(name)[1]
        return _cached(self._by_path, path, lambda: self._verdict_by_path(path, name))

    def _verdict_by_name(self, name: str) -> tuple[int, bool | None]:
        return _cached(self._by_name, name, lambda: self._last_match_by_name(name))

    def _verdict_by_path(self, path: str, name: str) -> bool | None:
        last, verdict = self._verdict_by_name(name)
        is_folder = path.endswith("/")
        compared = as_bytes(path.removesuffix("/"))
        names = compared.split("/")
        for number, rule, matches in self._paths:
            if number < last:
                break
            if (is_folder or not rule.is_for_folders) and matches(compared, names):
                return rule.ignores
        return verdict

    def _last_match_by_name(self, name: str) -> tuple[int, bool | None]:
        """Return number and verdict of the last line without a slash that matches a name; 0 and None without one."""
        is_folder = name.endswith("/")
        compared = as_bytes(name.removesuffix("/"))
        last, verdict = 0, None
        for number, rule in self._literal_names.get(compared, ()):
            if is_folder or not rule.is_for_folders:
                last, verdict = number, rule.ignores
        for number, rule in self._names:
            if number < last:
                break
            if (is_folder or not rule.is_for_folders) and rule.matches_name(compared):
                return number, rule.ignores
        return last, verdict


def _cached(answers: dict[str, _Answer], key: str, find: Callable[[], _Answer]) -> _Answer:
    try:
        return answers[key]
    except KeyError:
        answer = find()
    if len(answers) >= MAXIMUM_ANSWERS:
        answers.clear()
    answers[key] = answer
    return answer


@record
class IgnoreScope:
    """The rules of one kind that apply in a folder: the ignore files with their folders, deepest first.

    Folders are relative to `top`, with forward slashes and a final slash; the top itself is the empty string.
    """

    file_name: str
    files: tuple[tuple[str, IgnoreFile], ...] = ()
    size: int = 0

    def inside(self, folder: Path, relative: str, names: Container[str]) -> "IgnoreScope":
        """Return the scope inside `folder`, which has entries of these `names`.

        The .gitignore files around a nested repository do not apply in it.
        """
        is_other_repository = relative != "" and ".git" in names and self.file_name == ".gitignore"
        around = IgnoreScope(self.file_name) if is_other_repository and self.files else self
        own = read_ignore_file(folder / self.file_name) if self.file_name in names else None
        return around.with_file(relative, own)

    def with_file(self, relative: str, file: IgnoreFile | None) -> "IgnoreScope":
        """Return the scope with one more file, which takes precedence; the same scope if it would be too large."""
        if file is None:
            return self
        size = self.size + file.size
        if size > MAXIMUM_SCOPE:
            _log_once(
                Path(relative, self.file_name),
                f"it has no effect: all ignore files for a folder may have at most {MAXIMUM_SCOPE} bytes",
            )
            return self
        return IgnoreScope(self.file_name, ((relative, file), *self.files), size)

    def ignores(self, path: str, name: str) -> bool:
        """Return whether the entry is ignored; `path` is relative to the top; both end in a slash for a folder."""
        for folder, file in self.files:
            verdict = file.verdict(path[len(folder) :], name)
            if verdict is not None:
                return verdict
        return False


def read_ignore_file(path: Path) -> IgnoreFile | None:
    """Return the rules in `path`; None if the file does not exist or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with reader_of(descriptor) as file:
            require_regular(os.fstat(descriptor))  # an untrusted clone may contain a link to a terminal
            data = file.read(MAXIMUM_IGNORE_FILE + 1)
    except OSError:
        return None
    rules = _rules_of(data)
    if rules.problems:
        _log_once(path, "; ".join(rules.problems))
    return rules


@lru_cache(maxsize=KEPT_FILES)
def _rules_of(data: bytes) -> IgnoreFile:
    return IgnoreFile(data)


def _log_once(path: Path, problem: str) -> None:
    if path not in _logged and len(_logged) < MAXIMUM_LOGGED:
        _logged.add(path)
        _log.warning("ignore file %s: %s", printable(str(path)), problem)
