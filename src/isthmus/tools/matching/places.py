"""Finds where a text has the tokens of another, and how the two differ there. Pure.

The kinds of difference are an order: a place that differs less is preferred to one that differs more. So of a block
that occurs twice, once with the white space that the model wrote, the latter is the one that it means.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, islice

from isthmus.record import record
from isthmus.tools.matching.tokens import TokenText, indentation_of, is_quote

SEPARATOR = "\0"
MAXIMUM_PLACES = 1_000
"""Maximum number of places that are compared; a piece that has as many is not found by anything but its exact text."""


class Difference(IntEnum):
    """Kinds of difference between the text that the model wrote and the one in the file, the smallest first."""

    NONE = 0
    QUOTES = 1
    LINE_ENDS = 2
    INDENTATION = 3
    TABS = 4
    BLANK_LINES = 5
    SPACING = 6
    PUNCTUATION = 7

    @property
    def words(self) -> str:
        """Words for "was found with ..."."""
        return _WORDS[self]


_WORDS = {
    Difference.NONE: "no difference",
    Difference.QUOTES: "other quotation marks",
    Difference.LINE_ENDS: "other white space at the ends of lines",
    Difference.INDENTATION: "another indentation",
    Difference.TABS: "another indentation (tabs, spaces or depth)",
    Difference.BLANK_LINES: "other blank lines",
    Difference.SPACING: "other white space within lines",
    Difference.PUNCTUATION: "other Unicode punctuation",
}


@record
class Place:
    """Tokens `first` to `last` of a file (half-open), and how they differ from those that were searched."""

    first: int
    last: int
    difference: Difference


def find_places(file: TokenText, old: TokenText) -> list[Place]:
    """Return the places of `file` that have the tokens of `old` and differ from it the least, without overlaps.

    A piece without a single word, such as closing brackets, says too little to be found unless it is there exactly.
    """
    count = len(old)
    if not any(token[0].isalnum() for token in old.tokens):
        return []
    found = [
        Place(first, first + count, _difference(file, first, old))
        for first in islice(_occurrences(file.folded, old.folded), MAXIMUM_PLACES)
        if _fits_lines(file, first, old)
    ]
    if len(found) == MAXIMUM_PLACES:
        return found
    least = min((place.difference for place in found), default=Difference.NONE)
    result: list[Place] = []
    for place in found:
        if place.difference == least and (not result or place.first >= result[-1].last):
            result.append(place)
    return result


def _occurrences(tokens: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Yield the indexes at which `tokens` goes on with `wanted`, overlapping ones too."""
    joined = SEPARATOR + SEPARATOR.join(tokens) + SEPARATOR
    piece = SEPARATOR + SEPARATOR.join(wanted) + SEPARATOR
    position = joined.find(piece)
    if position < 0:
        return
    offsets = [0, *accumulate(len(token) + 1 for token in tokens)]
    while position >= 0:
        yield bisect_left(offsets, position)
        position = joined.find(piece, position + 1)


def _fits_lines(file: TokenText, first: int, old: TokenText) -> bool:
    """Return whether the place begins and ends a line wherever `old` shows that its text does.

    A few tokens without a line of their own say too little to be found by them.
    """
    last = first + len(old) - 1
    begins, ends = file.begins_line(first), file.ends_line(last)
    if (old.gap(0) and not begins) or ("\n" in old.gap(len(old)) and not ends):
        return False
    return (begins and ends) or len(old) >= _ENOUGH_TOKENS


_ENOUGH_TOKENS = 4
"""Minimum number of tokens of a piece that is only a part of its lines."""


def _difference(file: TokenText, first: int, old: TokenText) -> Difference:
    """Return the largest kind of difference between `old` and the same tokens in the file."""
    found = _token_difference(old.tokens, file.tokens[first : first + len(old)])
    lines = [(old.indentation(0), indentation_of(file.gap(first)))] if file.begins_line(first) else []
    if old.gap(0) and any(written != actual for written, actual in lines):
        found = max(found, Difference.INDENTATION)
    for index in range(1, len(old)):
        written, actual = old.gap(index), file.gap(first + index)
        if "\n" in written and "\n" in actual:
            lines.append((indentation_of(written), indentation_of(actual)))
        if written != actual:
            found = max(found, _gap_difference(written, actual))
    if found >= Difference.INDENTATION and not _has_common_shift(lines):
        found = max(found, Difference.TABS)
    return found


def _token_difference(old: Sequence[str], actual: Sequence[str]) -> Difference:
    found = Difference.NONE
    if list(old) == list(actual):
        return found
    for written, there in zip(old, actual, strict=True):
        if written != there:
            both = is_quote(written) and is_quote(there)
            found = max(found, Difference.QUOTES if both else Difference.PUNCTUATION)
    return found


def _gap_difference(written: str, actual: str) -> Difference:
    if "\n" not in written or "\n" not in actual:
        return Difference.SPACING
    if written.count("\n") != actual.count("\n"):
        return Difference.BLANK_LINES
    return Difference.LINE_ENDS if indentation_of(written) == indentation_of(actual) else Difference.INDENTATION


def _has_common_shift(lines: Sequence[tuple[str, str]]) -> bool:
    """Return whether one indentation, taken from or put before all lines that were written, gives the file's."""
    if not lines:
        return True
    written, actual = min(lines, key=lambda pair: len(pair[0]))
    return all(
        old.startswith(written) and new.startswith(actual) and old[len(written) :] == new[len(actual) :]
        for old, new in lines
    )
