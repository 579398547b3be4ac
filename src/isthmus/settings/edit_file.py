"""Changes a settings file: reads it, has its text edited, and replaces it atomically.

If anything fails, the file stays as it was. :mod:`isthmus.encoding.jsonc_edit` edits the text.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from isthmus.encoding.jsonc import JsoncError
from isthmus.errors import IsthmusError
from isthmus.files.atomic import FileChangedError, exclusive, read_regular, write_if_unchanged

MAXIMUM_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 5
_LOCK_SECONDS = 10.0
_NEW_FILE_MODE = 0o600
"""Mode that lets only the owner read the file, because settings contain tokens."""


class SettingsFileError(IsthmusError):
    """The file was not changed; the text names it, and the line and column of an error in it."""


def change_file(path: Path, change: Callable[[str], str]) -> bool:
    """Replace the file's text (empty for a missing file) by the result of `change`; return whether it differs.

    If another program changes the file meanwhile, `change` is called again with the new text.

    Raises:
        SettingsFileError: the file cannot be read, is not JSON for `change` (JsoncError), or cannot be written.
    """
    if not path.parent.is_dir():
        if not _changed(path, b"", change):
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsFileError(f"{path.parent} cannot be created: {error.strerror or error}") from error
    with contextlib.ExitStack() as stack:
        # The lock is between processes of Isthmus. A change by another program is noticed just before the replacement.
        with contextlib.suppress(OSError):
            stack.enter_context(exclusive(path.parent, _LOCK_SECONDS))
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileChangedError):
                return _change_once(path, change)
    raise SettingsFileError(f"{path} was not changed, because another program keeps writing to it; try again")


def _change_once(path: Path, change: Callable[[str], str]) -> bool:
    """Change the file; raise FileChangedError if another program changed it meanwhile."""
    try:
        before: bytes | None = read_regular(path, MAXIMUM_BYTES)
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise SettingsFileError(f"{path} cannot be read: {error.strerror or error}") from error
    after = _changed(path, before or b"", change)
    if after == (before or b""):
        return False
    try:
        write_if_unchanged(path, after, before, mode=None if before is not None else _NEW_FILE_MODE)
    except OSError as error:
        raise SettingsFileError(f"{path} cannot be written: {error.strerror or error}") from error
    return True


def _changed(path: Path, before: bytes, change: Callable[[str], str]) -> bytes:
    try:
        return change(before.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError as error:
        line = before.count(b"\n", 0, error.start) + 1
        column = error.start - before.rfind(b"\n", 0, error.start)
        raise SettingsFileError(f"{path}:{line}:{column}: expected UTF-8 text; nothing was written") from error
    except JsoncError as error:
        message = str(error).partition(": ")[2]
        raise SettingsFileError(
            f"{path}:{error.line}:{error.column}: {message}; nothing was written, correct the file first"
        ) from error
