"""Locations in files as users write them on the command line: FILE:LINE:CHAR and FILE:START-END, all 1-based.

An existing file whose name has this form takes precedence.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from isthmus.files.locations import absolute
from isthmus.ide.editor import Range
from isthmus.ide.positions import from_one_based

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[0-9]+)(?::(?P<character>[0-9]+))?", re.DOTALL)
_RANGE = re.compile(
    r"(?P<file>.+?):(?P<line>[0-9]+)(?::(?P<character>[0-9]+))?(?:-(?P<end>[0-9]+)(?::(?P<end_character>[0-9]+))?)?",
    re.DOTALL,
)


def locate(path: str, folders: Sequence[str] = ()) -> str:
    """Return the absolute path of a file in the current folder if it exists, otherwise in the first of ``folders``.

    With several ``folders``, the first one in which the file exists counts.
    """
    if not folders or _exists(path):
        return absolute(path)
    candidates = [absolute(str(Path(folder) / path)) for folder in folders]
    return next((candidate for candidate in candidates if _exists(candidate)), candidates[0])


def parse_place(text: str, folders: Sequence[str] = ()) -> tuple[str, Range | None]:
    """Return the path as :func:`locate` finds it, and the location as an empty 0-based range, or None if not given."""
    match = None if _exists(locate(text, folders)) else _PLACE.fullmatch(text)
    if match is None:
        return locate(text, folders), None
    position = from_one_based(int(match["line"]), int(match["character"] or 1))
    return locate(match["file"], folders), Range(position, position)


def parse_range(text: str, folders: Sequence[str] = ()) -> tuple[str, int | None, int | None, int | None, int | None]:
    """Return the path from :func:`locate`, line, character, end line, end character; 1-based, None if not given."""
    match = None if _exists(locate(text, folders)) else _RANGE.fullmatch(text)
    if match is None:
        return locate(text, folders), None, None, None, None
    numbers = [int(match[name]) if match[name] else None for name in ("line", "character", "end", "end_character")]
    return locate(match["file"], folders), numbers[0], numbers[1], numbers[2], numbers[3]


def _exists(path: str) -> bool:
    """Return whether a file exists; False also for a name that is too long or a folder without permission."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for these
