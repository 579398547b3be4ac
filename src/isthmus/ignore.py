"""Ignore files (.gitignore, .geminiignore) with git's rules: per folder, the deepest and then the last match counts.

Patterns are compiled by pathspec, once per file. A scope holds the rules that count inside one folder; a walk makes
the scope of a folder from that of its parent, and must not enter a folder that is ignored. Patterns without a slash
need only the name, so their answers are remembered per name; the others are only tried below their literal beginning.
"""

import os
import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from isthmus.files import require_regular

MAXIMUM_IGNORE_FILE = 1_000_000
"""Bytes of an ignore file that are read; the rest has no effect."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of an ignore file."""

    regex: re.Pattern[str]
    ignores: bool
    is_for_folders: bool
    needs_name_only: bool
    beginning: str

    def matches(self, path: str) -> bool:
        """Whether the rule is about exactly this entry (folders end in a slash), not about a folder around it."""
        if self.is_for_folders and not path.endswith("/"):
            return False
        if self.regex.pattern == ".":
            return True
        if "ps_d" in self.regex.groupindex:
            return self.regex.fullmatch(path) is not None
        found = self.regex.match(path)
        return found is not None and found.end() < len(path)


class IgnoreFile:
    """The rules of one ignore file, for paths relative to its folder."""

    def __init__(self, text: str) -> None:
        # Compiling is dear and pathspec is not needed by a session that never searches.
        from pathspec.patterns.gitignore.base import GitIgnorePatternError
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

        self._rules: list[_Rule] = []
        for line in text.removeprefix("\ufeff").split("\n"):
            line = line.removesuffix("\r")
            if not line.endswith("\\ "):
                line = line.rstrip(" ")
            # pathspec takes a folder's pattern for one about everything below it as well.
            pattern = line.removesuffix("/")
            try:
                compiled = GitIgnoreSpecPattern(pattern)
            except GitIgnorePatternError:
                # Git ignores a malformed line, too.
                continue
            regex = cast("re.Pattern[str] | None", compiled.regex)  # pyright: ignore[reportUnknownMemberType]
            if compiled.include is None or regex is None:
                continue
            pattern = pattern.removeprefix("!")
            beginning = re.split(r"[*?\[\\]", pattern.removeprefix("/"), maxsplit=1)[0].rpartition("/")[0]
            self._rules.append(_Rule(regex, compiled.include, line.endswith("/"), "/" not in pattern, beginning))
        self._rules.reverse()
        self._is_by_name = all(rule.needs_name_only for rule in self._rules)
        self._by_name: dict[str, bool | None] = {}

    def verdict(self, path: str, name: str) -> bool | None:
        """Whether the entry is ignored, or None when no rule is about it. Both strings end in a slash for a folder."""
        if self._is_by_name:
            if name not in self._by_name:
                self._by_name[name] = self._last_match(name, name)
            return self._by_name[name]
        return self._last_match(path, name)

    def _last_match(self, path: str, name: str) -> bool | None:
        for rule in self._rules:
            if rule.needs_name_only:
                if rule.matches(name):
                    return rule.ignores
            elif path.startswith(rule.beginning) and rule.matches(path):
                return rule.ignores
        return None


@dataclass(frozen=True, slots=True)
class IgnoreScope:
    """The rules of one kind that count inside a folder, the deepest file first, with the folder of each.

    Folders are relative to `top`, with forward slashes and a final slash; the top itself is the empty string.
    """

    file_name: str
    files: tuple[tuple[str, IgnoreFile], ...] = ()

    def inside(self, folder: Path, relative: str, names: Container[str]) -> "IgnoreScope":
        """The scope inside `folder`, which has entries of these `names`.

        A repository of its own does not see the .gitignore files around it.
        """
        is_other_repository = relative != "" and ".git" in names and self.file_name == ".gitignore"
        files = () if is_other_repository else self.files
        own = read_ignore_file(folder / self.file_name) if self.file_name in names else None
        if own is None and files is self.files:
            return self
        return IgnoreScope(self.file_name, files if own is None else ((relative, own), *files))

    def with_file(self, relative: str, file: IgnoreFile | None) -> "IgnoreScope":
        """The scope with one more file, whose rules count most."""
        return self if file is None else IgnoreScope(self.file_name, ((relative, file), *self.files))

    def ignores(self, path: str, name: str) -> bool:
        """Whether the entry is ignored; `path` is relative to the top; both end in a slash for a folder."""
        for folder, file in self.files:
            verdict = file.verdict(path[len(folder) :], name)
            if verdict is not None:
                return verdict
        return False


def read_ignore_file(path: Path) -> IgnoreFile | None:
    """The rules in `path`; None when there is no such file or it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            require_regular(os.fstat(descriptor))  # what was just cloned may have a link to a terminal there
            data = file.read(MAXIMUM_IGNORE_FILE)
    except OSError:
        return None
    return IgnoreFile(data.decode("utf-8", "surrogateescape"))
