"""Patterns over paths as lists of names, matched from left to right without backtracking.

A pattern is a list of name matchers with gaps between some of them; a gap matches any names. The first place where the
matchers between two gaps match is as good as any later one, so that no backtracking is needed. Not here: the syntax of
patterns, see :mod:`isthmus.files.ignore.git_pattern` and :mod:`isthmus.tools.search.glob_pattern`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from isthmus.record import record

NameMatcher: TypeAlias = Callable[[str], object]
"""Returns a true value if a whole name matches."""


@record
class Gap:
    """Gap of at least `minimum` names."""

    minimum: int = 0


class PathPattern:
    """A compiled pattern."""

    def __init__(self, parts: Iterable[NameMatcher | Gap]) -> None:
        blocks: list[list[NameMatcher]] = [[]]
        gaps: list[int] = []
        for part in parts:
            if not isinstance(part, Gap):
                blocks[-1].append(part)
            elif gaps and not blocks[-1]:
                gaps[-1] += part.minimum
            else:
                gaps.append(part.minimum)
                blocks.append([])
        self._first, *self._others = blocks
        self._gaps = gaps

    def matches(self, names: Sequence[str]) -> bool:
        """Return whether the pattern matches all of `names`, in order."""
        first = self._first
        if not self._gaps:
            return len(names) == len(first) and _fits(first, names, 0)
        last = self._others[-1]
        end = len(names) - len(last)
        if end < len(first) + self._gaps[-1] or not _fits(first, names, 0) or not _fits(last, names, end):
            return False
        position = len(first)
        for minimum, block in zip(self._gaps, self._others[:-1], strict=False):
            places = range(position + minimum, end - len(block) + 1)
            place = next((place for place in places if _fits(block, names, place)), None)
            if place is None:
                return False
            position = place + len(block)
        return end - position >= self._gaps[-1]


def _fits(block: Sequence[NameMatcher], names: Sequence[str], start: int) -> bool:
    return all(matches(names[start + index]) for index, matches in enumerate(block))
