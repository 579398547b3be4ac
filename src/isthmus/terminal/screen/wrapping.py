"""Rows of a text that is wider than the screen: broken between words, with a hanging indent. Pure.

A word is cut in pieces only if it alone is longer than a row. Wide characters, as in Chinese, may end any row.
"""

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

NARROWEST = 10
"""Minimum number of cells of a row behind its indent."""
_WIDE = (
    r"\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    r"\U00020000-\U0003ffff"
)
_UNITS = re.compile(rf"\s+|[^\s{_WIDE}]+|[{_WIDE}]")
"""Blanks, words of narrow characters, and single wide ones."""
_SIGN = r"[!?+\-*\u2713\u2717\u2013\u2219\u00b7\u203a$x.>] +|\w[.)]?  +|\d+[.)]? +"
_BEGINNING = re.compile(rf"( *)((?:{_SIGN})?)(\S+(?: \S+)* {{2,}}(?=\S))?")
"""Indent, sign or number, and the first column of a table."""


def row_spans(text: str, room: int, hanging: int = 0) -> list[tuple[int, int]]:
    """Return where each row begins and ends in a line of text; rows after the first leave out ``hanging`` cells.

    Blanks between two rows belong to neither.
    """
    later = max(NARROWEST, room - hanging)
    spans: list[tuple[int, int]] = []
    begin = end = 0
    limit, used, used_with_blanks = room, 0, 0
    for at, unit in _units(text):
        cells = cell_len(unit)
        if unit.isspace() and at:
            used_with_blanks = used + cells
            continue
        if used_with_blanks + cells <= limit:
            end = at + len(unit)
            used = used_with_blanks = used_with_blanks + cells
            continue
        if cells <= later and at > begin:
            spans.append((begin, end))
            begin, end, limit, used = at, at + len(unit), later, cells
        else:
            # The word is longer than a row: it begins behind the text before it, as far as there is room.
            used = used_with_blanks
            if used >= limit and end > begin:
                spans.append((begin, end))
                begin, limit, used = at, later, 0
            for offset, character in enumerate(unit):
                width = cell_len(character)
                if used + width > limit and at + offset > begin:
                    spans.append((begin, at + offset))
                    begin, limit, used = at + offset, later, 0
                used += width
            end = at + len(unit)
        used_with_blanks = used
    return [*spans, (begin, len(text) if not spans and cell_len(text) <= room else max(begin, end))]


def word_rows(text: str, room: int, hanging: int = 0) -> list[str]:
    """Return a line of text in rows of at most ``room`` cells; rows after the first begin with ``hanging`` blanks."""
    first, *rest = row_spans(text, room, hanging)
    return [text[slice(*first)], *(" " * hanging + text[slice(*span)] for span in rest)]


def hanging_of(line: str, room: int) -> int:
    """Return the hanging indent of a line: behind its sign, or below the second column of a table."""
    found = _BEGINNING.match(line)
    if found is None:
        return 0
    indent, sign, column = (cell_len(found[group] or "") for group in (1, 2, 3))
    if column and indent + sign + column <= room // 2:
        return indent + sign + column
    return min(indent + (sign or (4 if column else 0)), room // 2)


def wrapped(line: Text, room: int, hanging: int | None = None) -> list[Text]:
    """Return a line in rows of at most ``room`` cells in its styles, with the hanging indent that fits it."""
    if cell_len(line.plain) <= room:
        return [line]
    hanging = hanging_of(line.plain, room) if hanging is None else hanging
    first, *rest = row_spans(line.plain, room, hanging)
    return [line[slice(*first)], *(Text(" " * hanging).append_text(line[slice(*span)]) for span in rest)]


def _units(text: str) -> Iterator[tuple[int, str]]:
    for found in _UNITS.finditer(text):
        yield found.start(), found[0]
