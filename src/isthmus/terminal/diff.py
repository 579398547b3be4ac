"""The change of a file as numbered lines, for reviews on a screen and for counting.

The lines are computed from the contents that would be written, never taken from a formatted diff that an agent sent.
"""

import re
from collections.abc import Iterator
from enum import Enum

from isthmus.development_tool import FileDiff
from isthmus.record import record


class LineKind(Enum):
    """Kind of a line in a diff; GAP represents omitted unchanged lines."""

    CONTEXT = " "
    ADDED = "+"
    REMOVED = "-"
    GAP = "@"
    NOTE = "\\"


@record
class DiffLine:
    """A line of a diff. ``number`` is 1-based: in the old file for REMOVED, else in the new one; 0 for GAP and NOTE."""

    kind: LineKind
    number: int
    text: str


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def diff_lines(diff: FileDiff) -> list[DiffLine]:
    """Return the hunks of the change with three lines of context, with a GAP between hunks."""
    from isthmus.text.diff import unified_diff

    return list(_numbered(unified_diff(diff.old_content, diff.new_content, diff.file_name)))


def changed_lines(diff: FileDiff) -> tuple[int, int]:
    """Return the numbers of lines that the change adds and removes."""
    kinds = [line.kind for line in diff_lines(diff)]
    return kinds.count(LineKind.ADDED), kinds.count(LineKind.REMOVED)


def _numbered(unified: str) -> Iterator[DiffLine]:
    old = new = 0
    in_hunk = False
    # Not splitlines(): a form feed inside a line of code does not end it.
    for line in unified.split("\n"):
        if header := _HUNK.match(line):
            if in_hunk:
                yield DiffLine(LineKind.GAP, 0, "")
            old, new, in_hunk = int(header[1]), int(header[2]), True
        elif not in_hunk or not line:
            continue
        elif line[0] == "-":
            yield DiffLine(LineKind.REMOVED, old, line[1:])
            old += 1
        elif line[0] == "+":
            yield DiffLine(LineKind.ADDED, new, line[1:])
            new += 1
        elif line[0] == " ":
            yield DiffLine(LineKind.CONTEXT, new, line[1:])
            old, new = old + 1, new + 1
        else:
            yield DiffLine(LineKind.NOTE, 0, line.lstrip("\\ "))
