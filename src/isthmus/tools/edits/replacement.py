"""Replaces a piece of a text with another; does not access files.

The piece should occur exactly. Only if it does not, the mistakes that models make when they repeat a text are
tolerated: one kind after the other (`matching.places.Difference`), then escapes too many, then a few other words. A
piece that several places fit equally well is never replaced.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from isthmus.record import record
from isthmus.text.text_file import Newlines, newlines_of, with_newlines_of
from isthmus.tools.matching.alignment import Segment
from isthmus.tools.matching.escapes import unescaped
from isthmus.tools.matching.merge import Edit, MergeConflict, Merged, merge
from isthmus.tools.matching.places import MAXIMUM_PLACES, find_places
from isthmus.tools.matching.readings import readings
from isthmus.tools.matching.similar import SimilarPlace, similar_places
from isthmus.tools.matching.tokens import TokenText

MINIMUM_SIMILARITY = 0.85
"""Minimum share of characters that a place has in common with a piece of several lines that occurs nowhere."""
MINIMUM_LINE_SIMILARITY = 0.92
"""The same for a single line, which says less about its place."""
MINIMUM_DISTANCE = 3
"""Minimum ratio of the differences that the next place has to the differences of the best one; nearer ones are
ambiguous."""
MAXIMUM_DIFFERENT_LINES = 0.2
"""Maximum share of lines with other words; one line may always have them."""
MINIMUM_SIMILAR_TOKENS = 8
MAXIMUM_LENIENT_CHARACTERS = 2_000_000
"""Maximum size of a text in which a piece is searched that does not occur exactly."""
MAXIMUM_NEAREST_LINES = 20
MAXIMUM_LISTED_PLACES = 10
MINIMUM_TELLING_CHARACTERS = 8
"""Minimum size of a replacement that is looked for where its piece is not found."""
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*|\*|--|<!--|;;|%|\"\"\"|\'\'\')(?:\s|$|[!*/#])")
_CODE = re.compile(r"[=(){};<>\[\]]")
_PROSE_WORDS = 4
_NEAR = 0.4
"""Minimum similarity of lines that are shown as the nearest ones."""


@record
class Replaced:
    """The text after `count` replacements; `tolerated` names the difference that the piece had, empty if none."""

    text: str
    count: int
    tolerated: str = ""


@record
class NotReplaced:
    """The piece occurs `count` times, which is not the expected number, or the replacement is made already.

    `lines` are the 1-based numbers of the lines where the first ten places begin. `nearest` is the part of the
    text that is most like the piece, as numbered lines; empty if there is none, or `count` is not 0. `made_at` is the
    line at which the text has the replacement already; 0 if it does not.
    """

    count: int
    lines: tuple[int, ...] = ()
    nearest: str = ""
    made_at: int = 0


def replace_text(text: str, old: str, new: str, expected: int | None = 1) -> Replaced | NotReplaced:
    """Return `text` with `new` for the piece `old`, which must occur `expected` times; None: at least once.

    Newlines in `new` become like the ones around it.
    """
    plain = text.replace("\r\n", "\n")
    plain_old = old.replace("\r\n", "\n")
    if newlines_of(old) is not Newlines.LF or newlines_of(text) is not Newlines.LF:
        new = new.replace("\r\n", "\n")
    found = _exact(plain, plain_old, new, expected)
    if found is None and len(plain) <= MAXIMUM_LENIENT_CHARACTERS:
        found = _Lenient(plain, expected).find(plain_old, new.replace("\r\n", "\n"))
    if found is None:
        found = NotReplaced(0)
    if isinstance(found, NotReplaced):
        if found.count == 0 and (line := _line_of(plain, new.replace("\r\n", "\n").strip("\n"))):
            return replace(found, made_at=line)
        return found
    made = [line for change in found.changes if (line := _made_at(plain, change))]
    if made and len(made) == len(found.changes):
        return NotReplaced(len(made), tuple(made[:MAXIMUM_LISTED_PLACES]), made_at=made[0])
    # Offsets of the CRLF newlines in the plain text: each of them before an offset shifts it by one.
    places = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    pieces: list[str] = []
    position = 0
    for change in found.changes:
        start = change.start + bisect_left(places, change.start)
        end = change.end + bisect_left(places, change.end)
        pieces += text[position:start], _with_newlines_around(text, start, end, change.text)
        position = end
    return Replaced("".join(pieces) + text[position:], len(found.changes), found.tolerated)


@record
class _Found:
    """The changes at the places of a piece, in order, and the difference that was tolerated."""

    changes: list[Merged]
    tolerated: str = ""


def _with_newlines_around(text: str, start: int, end: int, new: str) -> str:
    """Return `new` with the newlines of the piece it replaces; within a line, with that line's."""
    piece = text[start:end]
    if "\n" in piece:
        return with_newlines_of(piece, new)
    line_end = text.find("\n", end)
    if line_end < 0:
        line_end = text.rfind("\n", 0, start)
    return new.replace("\n", "\r\n") if line_end > 0 and text[line_end - 1] == "\r" else new


def _exact(text: str, old: str, new: str, expected: int | None) -> _Found | NotReplaced | None:
    starts: list[int] = []
    start = text.find(old)
    while start >= 0:
        starts.append(start)
        start = text.find(old, start + len(old))
    if not starts:
        return None
    if expected is not None and len(starts) != expected:
        return _too_many(text, starts)
    return _Found([Merged(start, start + len(old), new) for start in starts])


def _line_of(text: str, new: str) -> int:
    """Return the line at which a text has a replacement that says enough to be recognised; 0 if it does not."""
    if len(new.strip()) < MINIMUM_TELLING_CHARACTERS or (start := text.find(new)) < 0:
        return 0
    return text.count("\n", 0, start) + 1


def _made_at(text: str, change: Merged) -> int:
    """Return the line at which the text around a place is the replacement already; 0 if it is not.

    A replacement that contains what it replaces would otherwise be made again and again.
    """
    old, new = text[change.start : change.end], change.text
    offset = new.find(old) if old and old != new else -1
    while offset >= 0:
        start = change.start - offset
        if start >= 0 and text.startswith(new, start):
            return text.count("\n", 0, start) + 1
        offset = new.find(old, offset + 1)
    return 0


def _too_many(text: str, starts: Sequence[int]) -> NotReplaced:
    listed = starts[:MAXIMUM_LISTED_PLACES]
    return NotReplaced(len(starts), tuple(text.count("\n", 0, start) + 1 for start in listed))


class _Lenient:
    """The places of a piece that does not occur exactly."""

    def __init__(self, text: str, expected: int | None) -> None:
        self._file = TokenText(text)
        self._expected = expected

    def find(self, old: str, new: str) -> _Found | NotReplaced:
        """Return the places that differ from `old` the least, with `new` fitted into each."""
        piece = TokenText(old)
        found = self._with_the_same_tokens(piece, new)
        if found is not None:
            return found
        for reading in readings(self._file.text, old, new):
            found = _exact(self._file.text, reading.old, reading.new, self._expected)
            found = found or self._with_the_same_tokens(TokenText(reading.old), reading.new)
            if isinstance(found, _Found):
                return _Found(found.changes, " and ".join(filter(None, (reading.words, found.tolerated))))
            if found is not None:
                return found
            old, new, piece = reading.old, reading.new, TokenText(reading.old)
        for plain_old, plain_new in unescaped(old, new):
            found = _exact(self._file.text, plain_old, plain_new, self._expected)
            found = found or self._with_the_same_tokens(TokenText(plain_old), plain_new)
            if isinstance(found, _Found):
                return _Found(found.changes, "fewer escapes: new_string was unescaped in the same way")
            if found is not None:
                return found
        return self._with_other_words(piece, new)

    def _with_the_same_tokens(self, old: TokenText, new: str) -> _Found | NotReplaced | None:
        places = find_places(self._file, old)
        if not places:
            return None
        if len(places) == MAXIMUM_PLACES or self._expected not in {None, len(places)}:
            return _too_many(self._file.text, [self._file.starts[place.first] for place in places])
        edit = Edit.of(old, new)
        whole = (Segment(0, len(old), 0, len(old), is_equal=True),)
        changes = [merge(self._file, edit, place.first, whole) for place in places]
        return _Found(changes, places[0].difference.words)

    def _with_other_words(self, old: TokenText, new: str) -> _Found | NotReplaced:
        places = similar_places(self._file, old)
        if not places:
            return NotReplaced(0)
        best = places[0]
        refusal = NotReplaced(0, nearest=self._numbered(best) if best.similarity >= _NEAR else "")
        is_alone = len(places) == 1 or 1 - places[1].similarity >= MINIMUM_DISTANCE * (1 - best.similarity)
        may_differ = _is_similar(old, best) and all(map(self._is_prose, self._other_words(best)))
        if not is_alone or not may_differ or self._expected not in {None, 1}:
            return refusal
        try:
            change = merge(self._file, Edit.of(old, new), best.first, best.segments)
        except MergeConflict:
            return refusal
        return _Found([change], "other words, which were kept: " + "; ".join(self._differences(old, best)))

    def _other_words(self, place: SimilarPlace) -> Iterator[int]:
        """Yield the tokens of the file at which it has other words than the piece."""
        for segment in place.segments:
            if not segment.is_equal:
                yield min(place.first + segment.other_start, len(self._file) - 1)

    def _is_prose(self, token: int) -> bool:
        """Return whether a token is in a comment, or in a line of words without signs of code.

        Another word in code may mean another place, and what the model knows of this one is too little then.
        """
        start = self._file.starts[token]
        begin = self._file.text.rfind("\n", 0, start) + 1
        before = self._file.text[begin:start]
        end = self._file.text.find("\n", start)
        line = self._file.text[begin : end if end >= 0 else None]
        return _COMMENT.search(before) is not None or (_CODE.search(line) is None and len(line.split()) >= _PROSE_WORDS)

    def _differences(self, old: TokenText, place: SimilarPlace) -> Iterator[str]:
        for segment in place.segments:
            if not segment.is_equal:
                actual = self._slice(self._file, place.first + segment.other_start, place.first + segment.other_end)
                line = self._line(min(place.first + segment.other_start, len(self._file) - 1))
                yield f"line {line} has {actual!r}, not {self._slice(old, segment.start, segment.end)!r}"

    def _slice(self, text: TokenText, start: int, end: int) -> str:
        return text.text[text.starts[start] : text.ends[end - 1]] if end > start else ""

    def _line(self, token: int) -> int:
        return self._file.text.count("\n", 0, self._file.starts[token]) + 1

    def _numbered(self, place: SimilarPlace) -> str:
        first = self._line(place.first)
        lines = self._file.text.split("\n")[first - 1 : self._line(place.last - 1)]
        return "\n".join(f"{first + index}\t{line}" for index, line in enumerate(lines[:MAXIMUM_NEAREST_LINES]))


def _is_similar(old: TokenText, place: SimilarPlace) -> bool:
    """Return whether the place has so much of the piece that the rest can only be a slip."""
    lines = old.text.strip().count("\n") + 1
    different = {
        old.text.count("\n", 0, old.starts[min(index, len(old) - 1)])
        for segment in place.segments
        if not segment.is_equal
        for index in range(segment.start, max(segment.end, segment.start + 1))
    }
    needed = MINIMUM_LINE_SIMILARITY if lines == 1 else MINIMUM_SIMILARITY
    few = len(different) <= max(1, lines * MAXIMUM_DIFFERENT_LINES)
    return few and place.similarity >= needed and len(old) >= MINIMUM_SIMILAR_TOKENS
