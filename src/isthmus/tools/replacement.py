"""Replaces a piece of a text with another; does not access files.

The piece must occur exactly. Only if it does not, common mistakes of models are tolerated, one kind after the other:
the other kind of newlines, whitespace at the ends of lines, and the indentation of the whole piece.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from isthmus.text.diff import split_lines
from isthmus.text.text_file import Newlines, newlines_of, with_newlines_of


@dataclass(frozen=True, slots=True)
class Replaced:
    """The text after `count` replacements; `is_exact` is False if differences in whitespace were tolerated."""

    text: str
    count: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class NotReplaced:
    """The piece occurs `count` times, which is not the expected number."""

    count: int


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """A half-open range of a text with LF newlines, and its replacement."""

    start: int
    end: int
    new: str


def replace_text(text: str, old: str, new: str, expected: int | None = 1) -> Replaced | NotReplaced:
    """Return `text` with `new` for the piece `old`, which must occur `expected` times; None: at least once.

    Newlines in `new` become those of the text around it.
    """
    plain = text.replace("\r\n", "\n")
    plain_old = old.replace("\r\n", "\n")
    if newlines_of(old) is not Newlines.LF or newlines_of(text) is not Newlines.LF:
        new = new.replace("\r\n", "\n")
    occurrences = _exact(plain, plain_old, new)
    is_exact = bool(occurrences)
    for forgiving in (_with_other_line_ends, _with_other_indentation):
        if not occurrences:
            occurrences = forgiving(plain, plain_old, new)
    if not occurrences or (expected is not None and len(occurrences) != expected):
        return NotReplaced(len(occurrences))
    # Offsets of the CRLF newlines in the plain text: each of them before an offset shifts it by one.
    places = [found.start() - index for index, found in enumerate(re.finditer("\r\n", text))]
    pieces: list[str] = []
    position = 0
    for occurrence in occurrences:
        start = occurrence.start + bisect_left(places, occurrence.start)
        end = occurrence.end + bisect_left(places, occurrence.end)
        pieces += text[position:start], _with_newlines_around(text, start, end, occurrence.new)
        position = end
    return Replaced("".join(pieces) + text[position:], len(occurrences), is_exact)


def _with_newlines_around(text: str, start: int, end: int, new: str) -> str:
    """Return `new` with the newlines of the piece it replaces; within a line, with those of that line."""
    piece = text[start:end]
    if "\n" in piece:
        return with_newlines_of(piece, new)
    line_end = text.find("\n", end)
    if line_end < 0:
        line_end = text.rfind("\n", 0, start)
    return new.replace("\n", "\r\n") if line_end > 0 and text[line_end - 1] == "\r" else new


def _exact(text: str, old: str, new: str) -> list[_Occurrence]:
    found: list[_Occurrence] = []
    start = text.find(old)
    while start >= 0:
        found.append(_Occurrence(start, start + len(old), new))
        start = text.find(old, start + len(old))
    return found


def _with_other_line_ends(text: str, old: str, new: str) -> list[_Occurrence]:
    """Return the runs of whole lines that differ from `old` only in whitespace at their ends."""
    return [_Occurrence(start, end, new) for start, end, _ in _runs_of_lines(text, old, str.rstrip)]


def _with_other_indentation(text: str, old: str, new: str) -> list[_Occurrence]:
    """Return the runs of whole lines that equal `old` but for a common indentation, which `new` then gets too."""
    found: list[_Occurrence] = []
    old_base = next((_indentation(line) for line in old.split("\n") if line.strip()), "")
    for start, end, lines in _runs_of_lines(text, old, str.strip):
        base = next(_indentation(line) for line in lines if line.strip())
        moved = [_moved(line, old_base, base).rstrip() for line in split_lines(old)]
        if moved == [line.rstrip() for line in lines]:
            new_lines = [_moved(line, old_base, base) for line in split_lines(new)]
            found.append(_Occurrence(start, end, "".join(new_lines)))
    return found


def _runs_of_lines(text: str, old: str, key: Callable[[str], str]) -> Iterator[tuple[int, int, list[str]]]:
    """Yield start, end and lines of runs of lines in `text` that equal those of `old` after `key`, without overlaps.

    The end excludes the last newline if `old` does not end in one.
    """
    wanted = [key(line) for line in split_lines(old)]
    if not any(wanted):
        return
    lines = split_lines(text)
    keys = [key(line) for line in lines]
    index = offset = 0
    while index + len(wanted) <= len(lines):
        if keys[index] == wanted[0] and keys[index : index + len(wanted)] == wanted:
            run = lines[index : index + len(wanted)]
            end = offset + sum(map(len, run))
            leaves_newline = run[-1].endswith("\n") and not old.endswith("\n")
            yield offset, end - leaves_newline, run
            index, offset = index + len(wanted), end
        else:
            offset += len(lines[index])
            index += 1


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _moved(line: str, old_base: str, base: str) -> str:
    return base + line[len(old_base) :] if line.strip() and line.startswith(old_base) else line
