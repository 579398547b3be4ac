"""Glob patterns over paths: ``*``, ``?``, ``[a-z]`` within a name, ``**`` over folders, ``{a,b}`` for either.

Matches name by name, so that the time grows linearly with the length of path and pattern. Names that begin with a dot
are ordinary. Ignore files have a syntax of their own (:mod:`isthmus.files.ignore.git_pattern`).
"""

import fnmatch
import re
from collections.abc import Sequence

from isthmus.files.ignore.path_pattern import Gap, NameMatcher, PathPattern

MAXIMUM_ALTERNATIVES = 256
"""Maximum number of expansions of braces; beyond it they are literal."""
MAXIMUM_BRACED_LENGTH = 1_000
"""Maximum length in characters of a pattern whose braces are expanded; in longer ones they are literal."""


class GlobPattern:
    """A compiled pattern for relative paths with forward slashes."""

    def __init__(self, pattern: str, *, is_case_sensitive: bool = True) -> None:
        flags = 0 if is_case_sensitive else re.IGNORECASE
        self._alternatives: list[PathPattern] = []
        self._by_name: list[tuple[PathPattern, NameMatcher]] = []
        """Pattern of folders, and of names in them, of each alternative; empty if one ends in ``**``."""
        for alternative in _alternatives(pattern):
            parts = [part for part in alternative.split("/") if part not in ("", ".")]
            matchers = [Gap() if part == "**" else _matcher(part, flags) for part in parts]
            self._alternatives.append(PathPattern(matchers))
            if matchers and not isinstance(last := matchers[-1], Gap):
                self._by_name.append((PathPattern(matchers[:-1]), last))
        if len(self._by_name) < len(self._alternatives):
            self._by_name.clear()

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches the whole of `path`."""
        names = path.split("/")
        return any(alternative.matches(names) for alternative in self._alternatives)

    def matching_names(self, folder: str, names: Sequence[str]) -> Sequence[str]:
        """Return the names of files in `folder` whose paths match; the folder is empty or ends in a slash."""
        if not self._by_name:
            return [name for name in names if self.matches(folder + name)]
        above = folder.split("/")[:-1]
        matchers = [name_of for folder_of, name_of in self._by_name if folder_of.matches(above)]
        if not matchers:
            return ()
        if len(matchers) == 1:
            return list(filter(matchers[0], names))
        return [name for name in names if any(matches(name) for matches in matchers)]


class FileFilter:
    """A filter for searches: a pattern without a slash matches the file name in any folder."""

    def __init__(self, pattern: str) -> None:
        anywhere = pattern if "/" in pattern.rstrip("/") else f"**/{pattern.rstrip('/')}"
        self._pattern = GlobPattern(anywhere)

    def matches(self, path: str) -> bool:
        """Return whether to search the file at the relative `path`."""
        return self._pattern.matches(path)

    def matching_names(self, folder: str, names: Sequence[str]) -> Sequence[str]:
        """Return the names of files in `folder` to search; the folder is empty or ends in a slash."""
        return self._pattern.matching_names(folder, names)


def has_glob_syntax(text: str) -> bool:
    """Return whether `text` contains special characters of a pattern."""
    return any(character in text for character in "*?[{")


def _matcher(part: str, flags: int) -> NameMatcher:
    # Within a name ** means *; fnmatch supports negation only as [!...].
    part = re.sub(r"\*{2,}", "*", part).replace("[^", "[!")
    return re.compile(fnmatch.translate(part), flags).fullmatch


def _alternatives(pattern: str) -> list[str]:
    """Return the pattern with its braces expanded; braces without a comma or without an end are literal."""
    if len(pattern) > MAXIMUM_BRACED_LENGTH:
        return [pattern]
    done: list[str] = []
    pending = [(pattern, 0)]
    while pending:
        text, start = pending.pop()
        found = _first_braces(text, start)
        if found is None:
            done.append(text)
        else:
            begin, end, choices = found
            new = [(text[:begin] + choice + text[end:], begin) for choice in choices]
            pending.extend(reversed(new))
        if len(done) + len(pending) > MAXIMUM_ALTERNATIVES:
            return [pattern]
    return done


def _first_braces(text: str, start: int) -> tuple[int, int, list[str]] | None:
    """Return the start, end and choices of the first group of braces with a comma from `start` on, or None."""
    for begin in range(start, len(text)):
        if text[begin] != "{":
            continue
        depth, choice_start, choices = 0, begin + 1, list[str]()
        for index in range(begin, len(text)):
            character = text[index]
            depth += (character == "{") - (character == "}")
            if depth == 0 or (depth == 1 and character == ","):
                choices.append(text[choice_start:index])
                choice_start = index + 1
            if depth == 0:
                if len(choices) > 1:
                    return begin, index + 1, choices
                break
    return None
