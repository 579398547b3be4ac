"""Reads the file on disk that stands beside a proposal. It is not a buffer of Neovim, and is never written."""

from pathlib import Path
from typing import Final

from isthmus.editors.neovim.text import BufferText
from isthmus.files.atomic import read_regular
from isthmus.ide.editor import EditorError

MAXIMUM_SHOWN_BYTES: Final = 64 * 1024 * 1024
NEW_FILE: Final = "new file"
"""Name of the side of the view where no file is on disk yet."""


def read_shown(path: str) -> tuple[BufferText, str]:
    """Return a file on disk and the name of that side of the view. Bytes that are not UTF-8 are kept."""
    try:
        data = read_regular(Path(path), MAXIMUM_SHOWN_BYTES)
    except FileNotFoundError:
        return BufferText.of(""), NEW_FILE
    except OSError as error:
        raise EditorError(f"{path}: cannot be shown: {error.strerror}") from error
    return BufferText.of(data.decode("utf-8", "surrogateescape")), "on disk"
