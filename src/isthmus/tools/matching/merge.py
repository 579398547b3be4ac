"""Carries an edit over to the text that a file really has: a merge of three texts by tokens. Pure.

The model writes `old` and `new`; the file has something that differs a little from `old`. Tokens and white space that
`old` and `new` share stay as the file has them; those that differ become the model's, in the file's indentation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from isthmus.record import record
from isthmus.tools.matching.alignment import Segment, align
from isthmus.tools.matching.indentation import IndentationMap, LinePair
from isthmus.tools.matching.tokens import TokenText, indentation_of


class MergeConflict(Exception):
    """The model changes a part that the file has in other words."""


@record
class Edit:
    """The two texts of an edit, and what it changes."""

    old: TokenText
    new: TokenText
    changes: tuple[Segment, ...]

    @classmethod
    def of(cls, old: TokenText, new: str) -> Self:
        """Return the edit from `old` to `new`."""
        tokens = TokenText(new)
        return cls(old, tokens, tuple(align(old, tokens, folded=True)))


@record
class Merged:
    """A half-open range of the file's text (in characters), and the text to put in its place."""

    start: int
    end: int
    text: str


@record
class _Token:
    """One token of the result: its index in each text that has it, and the index in `old` that it is next to."""

    file: int | None
    old: int | None
    new: int | None
    near: int


def merge(file: TokenText, edit: Edit, first: int, places: Sequence[Segment]) -> Merged:
    """Return the edit at token `first` of the file.

    `places` are the segments of the edit's old text and of the file's tokens from `first` on; a segment that is not
    equal is what the model remembers wrongly.

    Raises:
        MergeConflict: the edit changes what the model remembers wrongly.
    """
    return _Merge(file, edit, first, places).result()


@dataclass(frozen=True, slots=True, order=True)
class _Claim:
    """White space of the file for a gap of the result; the lowest rank gets it. If it adds lines, it is given once."""

    rank: int
    place: int
    text: str
    adds_lines: bool


class _Merge:
    def __init__(self, file: TokenText, edit: Edit, first: int, places: Sequence[Segment]) -> None:
        self._file, self._old, self._new = file, edit.old, edit.new
        self._changes = edit.changes
        self._first, self._last = first, first + places[-1].other_end
        self._places = places
        self._file_of: dict[int, int] = {}
        for segment in places:
            if segment.is_equal:
                for offset in range(segment.end - segment.start):
                    self._file_of[segment.start + offset] = first + segment.other_start + offset
        self._begins_line = file.begins_line(first)
        self._indentations = IndentationMap.of(self._line_pairs())
        has_moved = any(pair.written != pair.actual for pair in self._indentations.pairs)
        self._keeps_new_indentation = not has_moved or self._is_written_for_the_file()
        self._is_moved = has_moved and self._keeps_new_indentation
        self._strips_line_ends = self._has_surplus_line_ends()

    def result(self) -> Merged:
        tokens = self._tokens()
        start = self._file.starts[self._first]
        end = self._file.ends[self._last - 1]
        if not tokens:
            return self._removal(start, end)
        pieces = [self._text(tokens[0])]
        if self._begins_line:
            start -= len(indentation_of(self._file.gap(self._first)))
            pieces.insert(0, "\n" * self._lines_before(tokens[0]) + self._lead(tokens[0]))
        gaps = self._file_gaps(tokens)
        for index, (before, after) in enumerate(pairwise(tokens)):
            pieces += gaps[index] if index in gaps else self._written_gap(before, after), self._text(after)
        return Merged(start, end, "".join(pieces) + "\n" * self._lines_after(tokens[-1]))

    def _removal(self, start: int, end: int) -> Merged:
        """Remove the place; with its lines, if `old` has their newline and `new` does not."""
        newlines = self._old.gap(len(self._old)).count("\n") - self._new.text.count("\n")
        if not self._begins_line:
            return Merged(start, end, "")
        start -= len(indentation_of(self._file.gap(self._first)))
        text = self._file.text
        if newlines > 0:
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end + 1
            if not text[end:line_end].strip():
                end = line_end
        return Merged(start, end, "")

    # --- Tokens -----------------------------------------------------------------------------------------------------

    def _tokens(self) -> list[_Token]:
        """Return the tokens of the result."""
        result: list[_Token] = []
        for change in self._changes:
            if change.is_equal:
                result += self._kept(change)
                continue
            self._check(change)
            result += (_Token(None, None, index, change.start) for index in range(change.other_start, change.other_end))
        return result

    def _kept(self, change: Segment) -> list[_Token]:
        """Return the tokens that the edit leaves alone, as the file has them."""
        result: list[_Token] = []
        shift = change.other_start - change.start
        for place in self._places:
            start, end = max(change.start, place.start), min(change.end, place.end)
            if place.is_equal:
                result += (_Token(self._file_of[index], index, index + shift, index) for index in range(start, end))
            elif change.start <= place.start and place.end <= change.end:
                theirs = range(self._first + place.other_start, self._first + place.other_end)
                result += (_Token(index, None, None, place.start) for index in theirs)
        return result

    def _check(self, change: Segment) -> None:
        """Raise if the change touches words that the file has differently, unless it replaces more than them."""
        for place in self._places:
            if place.is_equal or change.end < place.start or place.end < change.start:
                continue
            theirs = self._file.folded[self._first + place.other_start : self._first + place.other_end]
            ours = self._new.folded[change.other_start : change.other_end]
            is_same = (place.start, place.end) == (change.start, change.end) and theirs == ours
            if not is_same and not (change.start < place.start and place.end < change.end):
                raise MergeConflict

    def _text(self, token: _Token) -> str:
        """Return the file's word, unless the edit exchanges just the kind of its quotation marks or dashes."""
        actual = "" if token.file is None else self._file.tokens[token.file]
        if token.new is None:
            return actual
        written = self._new.tokens[token.new]
        is_changed = token.old is not None and self._old.tokens[token.old] != written
        return written if token.file is None or is_changed else actual

    # --- White space ------------------------------------------------------------------------------------------------

    def _file_gaps(self, tokens: Sequence[_Token]) -> dict[int, str]:
        """Return the white space of the file that the edit leaves alone, by the index of the token before it.

        Each piece is used once. Of the two ends of new lines, the one that the file has exactly so gets its blank
        lines, otherwise the second one.
        """
        claims = sorted(
            (claim, index)
            for index, (before, after) in enumerate(pairwise(tokens))
            for claim in self._claims(before, after)
        )
        result: dict[int, str] = {}
        used: set[int] = set()
        for claim, index in claims:
            if index not in result and claim.place not in used:
                result[index] = claim.text
                if claim.adds_lines:
                    used.add(claim.place)
        return result

    def _claims(self, before: _Token, after: _Token) -> Iterator[_Claim]:
        """Yield the gaps of the file that may be between two tokens of the result."""
        if before.new is None or after.new is None:
            # A word that only the file has keeps what is around it.
            place = after.file if after.file is not None else (before.file or 0) + 1
            yield _Claim(0, place, self._file.gap(place), adds_lines=False)
            return
        beside: list[tuple[int, int]] = []
        if before.file is not None and before.old is not None:
            beside.append((before.file + 1, before.old + 1))
        if after.file is not None and after.old is not None:
            beside.append((after.file, after.old))
        if len(beside) == 2 and beside[0] != beside[1]:
            yield from self._claims_of_removal(beside[0], beside[1], after, self._new.gap(after.new))
        for place, old_index in beside:
            if self._first < place < self._last:
                yield from self._claims_beside(place, old_index, after, self._new.gap(after.new))

    def _claims_of_removal(
        self, left: tuple[int, int], right: tuple[int, int], after: _Token, written: str
    ) -> Iterator[_Claim]:
        """Yield the gap that remains of two around removed lines: all blank lines that `old` does not have."""
        known = self._old.gap(left[1]).count("\n"), self._old.gap(right[1]).count("\n")
        if all(known) and written.count("\n") == sum(known) - 1:
            first, second = _line_ends(self._file.gap(left[0])), _line_ends(self._file.gap(right[0]))
            if first and second:
                indentation = self._indentation_at(written, self._old.gap(right[1]), after)
                yield _Claim(2, right[0], first + second[second.index("\n") + 1 :] + indentation, adds_lines=False)

    def _claims_beside(self, place: int, old_index: int, after: _Token, written: str) -> Iterator[_Claim]:
        """Yield the gap beside a token that stays, if `new` leaves it as `old` has it, or has it as the file does."""
        actual, old_gap = self._file.gap(place), self._old.gap(old_index)
        is_first_end = after.file is None
        adds_lines = actual.count("\n") > old_gap.count("\n")
        if self._keeps_new_indentation and written == actual and written != old_gap:
            yield _Claim(1, place, actual, adds_lines=adds_lines)
        elif written == (actual if self._is_moved else old_gap):
            yield _Claim(3 + is_first_end, place, actual, adds_lines=adds_lines)
        elif "\n" in written and "\n" in actual and _line_ends(written) == _line_ends(old_gap):
            text = _line_ends(actual) + self._indentation_at(written, old_gap, after)
            yield _Claim(5 + is_first_end, place, text, adds_lines=adds_lines)

    def _indentation_at(self, written: str, old_gap: str, after: _Token) -> str:
        """Return the indentation after a gap that `new` and `old` end alike."""
        is_kept = written == old_gap and not self._is_moved and after.file is not None
        if is_kept and indentation_of(self._old.gap(after.old or 0)) == indentation_of(written):
            return indentation_of(self._file.gap(after.file or 0))
        return self._indentation(indentation_of(written), after.near)

    def _written_gap(self, before: _Token, after: _Token) -> str:
        """Return the white space that the model wrote between two tokens, with the file's indentation."""
        if after.new is None or before.new is None:
            return self._file.gap(after.file or 0)
        written = self._new.gap(after.new)
        if "\n" not in written:
            return written
        ends = _line_ends(written)
        if self._strips_line_ends:
            ends = "\n" * ends.count("\n")
        return ends + self._indentation(indentation_of(written), after.near)

    def _lines_before(self, first: _Token) -> int:
        """Return the number of blank lines before the result; the file's if the lines before it are removed."""
        added = self._new.gap(0).count("\n") - self._old.gap(0).count("\n")
        if first.file is None or first.old is None or first.file == self._first:
            return max(0, added)
        return self._rest(added, first.old, first.file)

    def _lines_after(self, last: _Token) -> int:
        added = self._new.gap(len(self._new)).count("\n") - self._old.gap(len(self._old)).count("\n")
        if last.file is None or last.old is None or last.file == self._last - 1:
            return max(0, added)
        return self._rest(added, last.old + 1, last.file + 1)

    def _rest(self, added: int, old_index: int, place: int) -> int:
        """Return the number of blank lines at an end whose lines are removed: the file's if `old` and `new` agree."""
        known, actual = self._old.gap(old_index).count("\n"), self._file.gap(place).count("\n")
        return max(0, actual - 1 if known and added == known - 1 else added)

    def _lead(self, first: _Token) -> str:
        """Return the indentation of the first line of the result."""
        file_lead = indentation_of(self._file.gap(self._first))
        old_lead, new_lead = self._old.gap(0), self._new.gap(0)
        written = indentation_of(new_lead)
        has_kept_first = first.file is not None and written == indentation_of(old_lead)
        if has_kept_first or not (old_lead or new_lead):
            return file_lead
        return self._indentation(written, 0)

    def _indentation(self, written: str, near: int) -> str:
        """Return the file's indentation for a line that the model indents so."""
        return written if self._keeps_new_indentation else self._indentations.map(written, near)

    def _has_surplus_line_ends(self) -> bool:
        """Return whether the model wrote white space at the end of lines that end without it in the file."""
        return any(
            _line_ends(self._old.gap(index)).strip("\n") and not _line_ends(self._file.gap(place)).strip("\n")
            for index, place in self._file_of.items()
            if index and "\n" in self._old.gap(index) and "\n" in self._file.gap(place)
        )

    def _line_pairs(self) -> list[LinePair]:
        """Return the indentations of the lines that both `old` and the file begin with the same token."""
        result = [
            LinePair(index, self._old.indentation(index), self._file.indentation(place))
            for index, place in sorted(self._file_of.items())
            if self._old.begins_line(index) and self._file.begins_line(place)
        ]
        # A model often begins after the first line's indentation and has the others right: then it says nothing.
        begins_after_it = bool(result) and not result[0].index and not self._old.gap(0)
        if begins_after_it and len(result) > 1 and all(pair.written == pair.actual for pair in result[1:]):
            del result[0]
        return result

    def _is_written_for_the_file(self) -> bool:
        """Return whether `new` has the file's indentation already, although `old` does not."""
        pairs = {pair.index: pair for pair in self._indentations.pairs}
        lines = [
            (pairs[index], self._new.indentation(index + change.other_start - change.start))
            for change in self._changes
            if change.is_equal
            for index in range(change.start, change.end)
            if index in pairs and self._new.begins_line(index + change.other_start - change.start)
        ]
        least_old = min((len(pair.written) for pair, _ in lines), default=0)
        least_file = min((len(pair.actual) for pair, _ in lines), default=0)
        least_new = min((len(written) for _, written in lines), default=0)
        if least_old != least_file and least_new in {least_old, least_file}:
            return least_new == least_file
        mine = sum(written == pair.written != pair.actual for pair, written in lines)
        yours = sum(written == pair.actual != pair.written for pair, written in lines)
        return yours > mine


def _line_ends(gap: str) -> str:
    """Return the white space up to the last newline: what comes before the indentation of the next line."""
    return gap[: gap.rfind("\n") + 1]
