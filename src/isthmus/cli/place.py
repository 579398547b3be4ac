"""How a person names a place in a file on the command line: FILE:LINE:CHAR and FILE:START-END, all 1-based.

A file whose name looks like that is meant when it exists.
"""

import re
from pathlib import Path

from isthmus.ide.editor import Position, Range
from isthmus.ide.places import absolute

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]+)(?::(?P<character>[0-9]+))?", re.DOTALL)
_RANGE = re.compile(
    r"(?P<file>.+?):(?P<line>[0-9]+)(?::(?P<character>[0-9]+))?(?:-(?P<end>[0-9]+)(?::(?P<end_character>[0-9]+))?)?",
    re.DOTALL,
)


def parse_place(text: str) -> tuple[str, Range | None]:
    """The absolute path, and the place in it as an empty range of the Editor port (0-based); None: no place given."""
    match = None if Path(text).exists() else _PLACE.fullmatch(text)
    if match is None:
        return absolute(text), None
    position = Position(max(int(match["line"]), 1) - 1, max(int(match["character"] or 1), 1) - 1)
    return absolute(match["file"]), Range(position, position)


def parse_range(text: str) -> tuple[str, int | None, int | None, int | None, int | None]:
    """Absolute path, line, character, end line, end character, 1-based as they came; None where not given."""
    match = None if Path(text).exists() else _RANGE.fullmatch(text)
    if match is None:
        return absolute(text), None, None, None, None
    numbers = [int(match[name]) if match[name] else None for name in ("line", "character", "end", "end_character")]
    return absolute(match["file"]), numbers[0], numbers[1], numbers[2], numbers[3]
