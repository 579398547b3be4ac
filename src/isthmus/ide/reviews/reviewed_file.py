"""The file that a review is about, as it is on disk; and the text of a notebook of which only some cells are accepted.

Deliberately not here: writing it. The agent does that.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from isthmus.files.atomic import read_regular
from isthmus.ide.editor import EditorError
from isthmus.notebooks.view import changes_between
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_FILE_BYTES: Final = 64 * 1024 * 1024


def text_on_disk(path: str) -> str | None:
    """The text of a file, its byte order mark included; None: there is no such file, or it is no text. Blocks."""
    try:
        file = decode_text(read_regular(Path(path), MAXIMUM_FILE_BYTES))
    except (OSError, BinaryContentError, ValueError):
        return None
    return ("\ufeff" if file.form.mark else "") + file.text


def with_accepted_cells(path: str, proposed: str, numbers: Collection[int]) -> str:
    """The notebook at `path` with the changes of these numbers (from 1) alone. Everything else keeps its bytes. Blocks.

    Raises:
        EditorError: it is no notebook that has changed cells.
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
