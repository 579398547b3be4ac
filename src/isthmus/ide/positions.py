"""Positions of the Editor port in other forms, in one place: offsets in a text, 1-based numbers, other encodings.

The port's own form is 0-based lines and UTF-16 units (:mod:`isthmus.ide.editor`). How long a text is in which encoding
is in :mod:`isthmus.text`. What Neovim has is converted in Neovim, by its own functions. Pure.
"""

from isthmus.ide.editor import Position, Range
from isthmus.text.offsets import OffsetEncoding, encoded_length, offset_from_encoded, offset_from_utf16, utf16_length


def from_one_based(line: int, character: int = 1) -> Position:
    """Return the position that people and spec 1 call ``line`` and ``character``, both from 1 on; less counts as 1."""
    return Position(max(line, 1) - 1, max(character, 1) - 1)


def one_based(position: Position) -> tuple[int, int]:
    """Line and character as people and spec 1 count them."""
    return position.line + 1, position.character + 1


def ordered(first: Position, second: Position) -> Range:
    """Return the range between two positions, whichever comes first."""
    return Range(*sorted((first, second), key=lambda position: (position.line, position.character)))


def line_at(text: str, line: int) -> tuple[int, str]:
    """Return the offset at which a line starts, and the line without its newline; past the end: the last line."""
    start = 0
    for _ in range(line):
        newline = text.find("\n", start)
        if newline < 0:
            break
        start = newline + 1
    end = text.find("\n", start)
    return start, text[start : end if end >= 0 else len(text)].removesuffix("\r")


def offset_at(text: str, position: Position) -> int:
    """Return the offset in code points of a position; past the end of its line: the line's end."""
    start, line = line_at(text, position.line)
    return start + offset_from_utf16(line, position.character)


def position_at(text: str, offset: int) -> Position:
    """Return the position of an offset in code points."""
    start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset), utf16_length(text[start:offset]))


def within(text: str, at: Range) -> Range:
    """Return the range cut to the text, with its ends in order."""
    return ordered(_within(text, at.start), _within(text, at.end))


def _within(text: str, position: Position) -> Position:
    line = min(position.line, text.count("\n"))
    # A place past the last line is the end of the text.
    character = position.character if line == position.line else len(text)
    cut = line_at(text, line)[1]
    return Position(line, utf16_length(cut[: offset_from_utf16(cut, character)]))  # never inside a surrogate pair


def from_encoding(line: str, character: int, encoding: OffsetEncoding) -> int:
    """UTF-16 units, for a ``character`` that counts in another encoding in this line; past its end: its length."""
    return utf16_length(line[: offset_from_encoded(line, character, encoding)])


def to_encoding(line: str, character: int, encoding: OffsetEncoding) -> int:
    """Return the other way round."""
    return encoded_length(line[: offset_from_utf16(line, character)], encoding)
