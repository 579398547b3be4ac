"""Reads the file of a review from disk, and accepts single cells of a notebook. The agent writes the file."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from isthmus.files.atomic import read_regular
from isthmus.ide.editor import EditorError
from isthmus.notebooks.view import changes_between
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_FILE_BYTES: Final = 64 * 1024 * 1024


def text_on_disk(path: str) -> str | None:
    """Return the text of a file with its byte order mark; None if it does not exist or is not text. Blocks."""
    try:
        file = decode_text(read_regular(Path(path), MAXIMUM_FILE_BYTES))
    except (OSError, BinaryContentError, ValueError):
        return None
    return ("\ufeff" if file.form.mark else "") + file.text


def with_accepted_cells(path: str, proposed: str, numbers: Collection[int]) -> str:
    """Return the notebook at ``path`` with only these changes (1-based) of ``proposed``, otherwise unchanged. Blocks.

    Raises:
        EditorError: the path is not that of an existing notebook, or ``numbers`` is empty.
        NoSuchChangeError: no change has this number.
    """
    changes = changes_between(path, text_on_disk(path), proposed)
    if changes is None:
        raise EditorError(
            f"{path}: cells can be accepted one by one only of a notebook that exists; accept or reject it whole"
        )
    if not numbers:
        raise EditorError(f"{path}: expected the number of at least one changed cell; to accept none, reject")
    return changes.accept(numbers)
