"""Converts positions of the Editor port to offsets in a text, 1-based numbers and other encodings.

The port uses 0-based lines and UTF-16 units (:mod:`isthmus.ide.editor`). :mod:`isthmus.text` measures text in each
encoding. Neovim's positions are converted in Neovim, by its own functions. Pure.
"""

from isthmus.ide.editor import Position, Range
from isthmus.text.offsets import OffsetEncoding, encoded_length, offset_from_encoded, offset_from_utf16, utf16_length


def from_one_based(line: int, character: int = 1) -> Position:
    """Return the position of a 1-based ``line`` and ``character``; numbers below 1 count as 1."""
    return Position(max(line, 1) - 1, max(character, 1) - 1)


def one_based(position: Position) -> tuple[int, int]:
    """Return the 1-based line and character of a position."""
    return position.line + 1, position.character + 1


def ordered(first: Position, second: Position) -> Range:
    """Return the range between two positions in either order."""
    return Range(*sorted((first, second), key=lambda position: (position.line, position.character)))


def line_at(text: str, line: int) -> tuple[int, str]:
    """Return a line's start offset, and the line without its newline; past the end of the text, the last line."""
    start = 0
    for _ in range(line):
        newline = text.find("\n", start)
        if newline < 0:
            break
        start = newline + 1
    end = text.find("\n", start)
    return start, text[start : end if end >= 0 else len(text)].removesuffix("\r")


def offset_at(text: str, position: Position) -> int:
    """Return the offset in code points of a position; past the end of its line, the line's end."""
    start, line = line_at(text, position.line)
    return start + offset_from_utf16(line, position.character)


def position_at(text: str, offset: int) -> Position:
    """Return the position of an offset in code points."""
    start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset), utf16_length(text[start:offset]))


def within(text: str, at: Range) -> Range:
    """Return the range limited to the text, with its ends in order."""
    return ordered(_within(text, at.start), _within(text, at.end))


def _within(text: str, position: Position) -> Position:
    line = min(position.line, text.count("\n"))
    # A position past the last line is the end of the text.
    character = position.character if line == position.line else len(text)
    cut = line_at(text, line)[1]
    return Position(line, utf16_length(cut[: offset_from_utf16(cut, character)]))  # never inside a surrogate pair


def from_encoding(line: str, character: int, encoding: OffsetEncoding) -> int:
    """Convert a ``character`` of another encoding to UTF-16 units; past the line's end, return the line's length."""
    return utf16_length(line[: offset_from_encoded(line, character, encoding)])


def to_encoding(line: str, character: int, encoding: OffsetEncoding) -> int:
    """Convert a ``character`` in UTF-16 units to another encoding; past the line's end, return the line's length."""
    return encoded_length(line[: offset_from_utf16(line, character)], encoding)
