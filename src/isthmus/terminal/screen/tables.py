"""Tables of Markdown, drawn with aligned columns within a width.

``table_of`` reads the lines of a pipe table; ``drawn`` returns its rows as pieces. Cells that do not fit are wrapped at
words, and a table that is too narrow for its columns becomes one list of values per row. Pure: not the collection of
the lines from a stream, see ``markdown``.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from isthmus.record import record
from isthmus.terminal.screen.pieces import Piece, cell_pieces

_DELIMITER = re.compile(r"\s*\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*")
_SEPARATOR = re.compile(r"(?<!\\)\|")
COLUMNS_MAXIMUM = 32
"""Maximum number of columns; more of them stay as the model wrote them."""
NARROWEST_COLUMN = 6
"""Minimum width of a column in cells on average; below it the rows become lists."""

Alignment = Literal["left", "center", "right"]


@record
class Table:
    """A table: cells of the head, the alignment of each column, and rows with as many cells."""

    head: tuple[str, ...]
    alignments: tuple[Alignment, ...]
    rows: tuple[tuple[str, ...], ...]


@record
class TableStyle:
    """Place and form of a table: ``width`` and ``indent`` in cells; ``is_styled`` removes the marks of styles."""

    width: int
    indent: int
    is_styled: bool
    is_ascii: bool
    cell_width: Callable[[str], int]


def is_delimiter(line: str) -> bool:
    """Return whether a line is the second one of a table, such as ``|---|:-:|``."""
    return "-" in line and "|" in line and _DELIMITER.fullmatch(line) is not None


def table_of(lines: Sequence[str]) -> Table | None:
    """Return the table of these lines, or None if they are not one. A row gets the number of cells of the head."""
    if len(lines) < 2 or not is_delimiter(lines[1]):
        return None
    head, marks = _cells(lines[0]), _cells(lines[1])
    if len(head) != len(marks) or len(head) > COLUMNS_MAXIMUM:
        return None
    count = len(head)
    rows = [_cells(line) for line in lines[2:]]
    even = [(*row[: count - 1], " | ".join(row[count - 1 :]), *[""] * (count - len(row)))[:count] for row in rows]
    return Table(tuple(head), tuple(_alignment(mark) for mark in marks), tuple(even))


def drawn(table: Table, style: TableStyle) -> list[list[Piece]]:
    """Return the lines of the table; none is wider than the width, except for the last resort of one cell."""
    count = len(table.head)
    room = max(1, style.width - style.indent)
    if room - 3 * (count - 1) < NARROWEST_COLUMN * count and count > 1:
        return _indented(_as_lists(table, room, style), style)
    every = [[cell_pieces(cell, is_styled=style.is_styled) for cell in row] for row in (table.head, *table.rows)]
    every[0] = [[piece if piece.style else Piece(piece.text, "strong") for piece in cell] for cell in every[0]]
    natural = [max(_width(row[column], style) for row in every) for column in range(count)]
    widths = _fitted([max(1, width) for width in natural], room - 3 * (count - 1))
    bar, rule, cross = (" | ", "-", "-+-") if style.is_ascii else (" │ ", "─", "─┼─")
    line = [Piece(cross.join(rule * width for width in widths), "fence")]
    wrapped = [[_wrapped(cell, width, style) for cell, width in zip(row, widths, strict=True)] for row in every]
    has_tall_rows = any(len(cell) > 1 for row in wrapped[1:] for cell in row)
    lines: list[list[Piece]] = []
    for number, row in enumerate(wrapped):
        if number == 1 or (number > 1 and has_tall_rows):
            lines.append(line)
        for at in range(max(len(cell) for cell in row)):
            pieces: list[Piece] = []
            for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
                part = cell[at] if at < len(cell) else []
                is_last = column == count - 1
                pieces += _aligned(part, width, table.alignments[column], style, is_last=is_last)
                pieces += [] if is_last else [Piece(bar, "fence")]
            lines.append(pieces)
    if len(wrapped) == 1:
        lines.append(line)
    return _indented(lines, style)


def _cells(line: str) -> list[str]:
    text = line.strip().removeprefix("|")
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _SEPARATOR.split(text)]


def _alignment(mark: str) -> Alignment:
    if mark.endswith(":"):
        return "center" if mark.startswith(":") else "right"
    return "left"


def _fitted(widths: list[int], room: int) -> list[int]:
    """Return widths whose sum is at most ``room``: the widest columns give way first."""
    excess = sum(widths) - room
    while excess > 0:
        widest = max(widths)
        if widest <= 1:
            break
        others = [width for width in widths if width < widest]
        at = [column for column, width in enumerate(widths) if width == widest]
        step = max(1, min(widest - max(others, default=1), -(-excess // len(at))))
        for column in at:
            taken = min(step, excess)
            widths[column] -= taken
            excess -= taken
    return widths


def _width(pieces: Sequence[Piece], style: TableStyle) -> int:
    return sum(style.cell_width(piece.text) for piece in pieces)


def _wrapped(pieces: Sequence[Piece], width: int, style: TableStyle) -> list[list[Piece]]:
    """Return the pieces in lines of at most ``width`` cells, broken at spaces, in long words, and in CJK anywhere."""
    lines: list[list[Piece]] = [[]]
    used = 0
    for word in _words(pieces, width, style):
        cells = _width(word, style)
        is_space = word[0].text == " "
        if used + cells > width:
            lines.append([])
            used = 0
        if is_space and used == 0:
            continue
        lines[-1] += word
        used += cells
    for line in lines:
        while line and line[-1].text == " ":
            line.pop()
    return lines


def _words(pieces: Sequence[Piece], width: int, style: TableStyle) -> list[list[Piece]]:
    """Return words, spaces and wide characters; a word that is wider than ``width`` in pieces."""
    words: list[list[Piece]] = []
    is_open, used = False, 0
    for piece in pieces:
        for character in piece.text:
            cells = style.cell_width(character)
            part = Piece(" " if character.isspace() else character, piece.style, piece.link)
            joins = not character.isspace() and cells < 2
            if joins and is_open and used + cells <= width:
                words[-1].append(part)
                used += cells
            else:
                words.append([part])
                used = cells
            is_open = joins
    return words


def _aligned(
    pieces: Sequence[Piece], width: int, alignment: Alignment, style: TableStyle, *, is_last: bool
) -> list[Piece]:
    spare = max(0, width - _width(pieces, style))
    before = {"left": 0, "center": spare // 2, "right": spare}[alignment]
    after = 0 if is_last else spare - before
    return [*([Piece(" " * before)] if before else []), *pieces, *([Piece(" " * after)] if after else [])]


def _as_lists(table: Table, room: int, style: TableStyle) -> list[list[Piece]]:
    """Return each row as lines of ``head: value``, with an empty line between rows."""
    lines: list[list[Piece]] = []
    for row in table.rows or [("",) * len(table.head)]:
        if lines:
            lines.append([])
        for name, value in zip(table.head, row, strict=True):
            head = [Piece(piece.text, "strong") for piece in cell_pieces(name, is_styled=style.is_styled)]
            text = [*head, Piece(": "), *cell_pieces(value, is_styled=style.is_styled)]
            lines += _wrapped(text, room, style)
    return lines


def _indented(lines: Sequence[list[Piece]], style: TableStyle) -> list[list[Piece]]:
    return [[Piece(" " * style.indent), *line] if style.indent and line else line for line in lines]
