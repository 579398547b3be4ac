"""Texts of files on disk, for plugins that do not send them."""

import contextlib
from pathlib import Path
from typing import Final

from isthmus.files.atomic import read_regular
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_READ_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a file that is read to convert positions, or for its newlines."""


def text_on_disk(path: str) -> str | None:
    """Return the text of a file on disk; None if it is too large, binary or cannot be read. Blocks."""
    with contextlib.suppress(OSError, ValueError, BinaryContentError):
        return decode_text(read_regular(Path(path), MAXIMUM_READ_BYTES)).text
    return None
