"""Unified diffs as sections of a patch: some models send them in place of one. Pure.

The numbers of the hunks do not count: models count badly.
"""

import re
from collections.abc import Iterator, Sequence

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
_NOTHING = "/dev/null"


def sections_of_diff(lines: Sequence[str]) -> list[str]:
    """Return the lines of a patch, without its beginning and its end; none if the lines are not a unified diff."""
    starts = [
        index
        for index in range(len(lines) - 1)
        if lines[index].startswith("--- ") and lines[index + 1].startswith("+++ ")
        if index + 2 < len(lines) and _HUNK.fullmatch(lines[index + 2]) is not None
    ]
    ends = [*starts[1:], len(lines)][: len(starts)]
    return [line for start, end in zip(starts, ends, strict=True) for line in _section(lines[start:end])]


def _section(lines: Sequence[str]) -> Iterator[str]:
    old, new = (line[4:].partition("\t")[0].strip() for line in lines[:2])
    if (old.removeprefix("a/") != old and new.removeprefix("b/") != new) or _NOTHING in (old, new):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    if new == _NOTHING:
        yield f"*** Delete File: {old}"
        return
    yield f"*** Add File: {new}" if old == _NOTHING else f"*** Update File: {old}"
    if old not in (_NOTHING, new):
        yield f"*** Move to: {new}"
    for line in lines[2:]:
        if _HUNK.fullmatch(line) is not None:
            if old != _NOTHING:
                yield "@@"
        elif line[:1] in ("+", "-", " ") or not line:
            yield line
        elif not line.startswith("\\ "):
            return  # the beginning of the next file, or of a text behind the diff
