"""How a user names a place in a file on the command line: FILE:LINE:CHAR and FILE:START-END, all 1-based.

A file whose name looks like that is meant when it exists.
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
    """The absolute path that is meant: in the current folder if it is there, else in the first of ``folders``."""
    if not folders or _exists(path):
        return absolute(path)
    candidates = [absolute(str(Path(folder) / path)) for folder in folders]
    return next((candidate for candidate in candidates if _exists(candidate)), candidates[0])


def parse_place(text: str, folders: Sequence[str] = ()) -> tuple[str, Range | None]:
    """Return the path as :func:`locate` finds it, and the place in it as an empty range of the Editor port (0-based).

    None: no place was given.
    """
    match = None if _exists(locate(text, folders)) else _PLACE.fullmatch(text)
    if match is None:
        return locate(text, folders), None
    position = from_one_based(int(match["line"]), int(match["character"] or 1))
    return locate(match["file"], folders), Range(position, position)


def parse_range(text: str, folders: Sequence[str] = ()) -> tuple[str, int | None, int | None, int | None, int | None]:
    """Path as :func:`locate` finds it, line, character, end line, end character, 1-based; None where not given."""
    match = None if _exists(locate(text, folders)) else _RANGE.fullmatch(text)
    if match is None:
        return locate(text, folders), None, None, None, None
    numbers = [int(match[name]) if match[name] else None for name in ("line", "character", "end", "end_character")]
    return locate(match["file"], folders), numbers[0], numbers[1], numbers[2], numbers[3]


def _exists(path: str) -> bool:
    """As far as can be told: a name that is too long is none, and what may not be looked at is not there."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises for these
