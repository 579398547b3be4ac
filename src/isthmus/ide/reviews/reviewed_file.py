"""Reads the file of a review from disk, compares what the user saw with what is there now, and accepts parts of it.

The agent writes the file.
"""

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Final

from isthmus.files.atomic import read_regular
from isthmus.ide.editor import EditorError
from isthmus.notebooks.view import changes_between
from isthmus.text.hunks import with_hunks
from isthmus.text.text_file import BinaryContentError, decode_text, with_newlines_of

MAXIMUM_FILE_BYTES: Final = 64 * 1024 * 1024


def text_on_disk(path: str) -> str | None:
    """Return the text of a file with its byte order mark; None if it does not exist or is not text. Blocks."""
    try:
        file = decode_text(read_regular(Path(path), MAXIMUM_FILE_BYTES))
    except (OSError, BinaryContentError, ValueError):
        return None
    return ("\ufeff" if file.form.mark else "") + file.text


def digest_on_disk(path: str) -> str | None:
    """Return a digest of a file's content; None if it does not exist, cannot be read or is too large. Blocks."""
    try:
        return hashlib.sha256(read_regular(Path(path), MAXIMUM_FILE_BYTES)).hexdigest()
    except (OSError, ValueError):
        return None


def with_accepted_cells(path: str, proposed: str, numbers: Collection[int]) -> str:
    """Return the notebook at ``path`` with only these changes (1-based) of ``proposed``, otherwise unchanged. Blocks.

    Raises:
        EditorError: the path does not name an existing notebook, or ``numbers`` is empty.
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


def with_accepted_hunks(path: str, old: str | None, shown: str, numbers: Collection[int]) -> str:
    """Return the text of the file with only these hunks (1-based) of ``shown``.

    Raises:
        EditorError: the path names a notebook, whose cells are chosen, or ``numbers`` is empty.
        NoSuchHunkError: no hunk has this number.
    """
    changes = changes_between(path, old, shown)
    if changes is not None and changes.all:
        raise EditorError(
            f"{path}: a notebook is accepted by cells; use --cells with the numbers of `isthmus ide diffs`"
        )
    if not numbers:
        raise EditorError(f"{path}: expected the number of at least one hunk; to accept none, reject")
    return with_hunks(old, shown, numbers)


def seen_state(old: str | None, new: str) -> str:
    """Return a digest of what the user sees: the text on disk, and the text to accept."""
    seen = hashlib.sha256()
    for text in (old or "", new):
        data = text.encode("utf-8", "surrogatepass")
        seen.update(len(data).to_bytes(8, "big") + data)
    return seen.hexdigest()


def typed_in_browser(shown: str, typed: str | None) -> str:
    """Return the text that the user typed, with the newlines and the byte order mark of the text that was shown.

    A browser sends all newlines alike, and no byte order mark.
    """
    if typed is None:
        return shown
    bare = shown.removeprefix("\ufeff")
    typed = _plain_newlines(typed.removeprefix("\ufeff"))
    if typed == _plain_newlines(bare):
        return shown
    return shown[: len(shown) - len(bare)] + with_newlines_of(bare, typed)


def _plain_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
