"""Changes a settings file in place: read, edited as text, written whole and atomically, for its owner alone when new.

Whatever goes wrong, the file stays as it was. Deliberately not here: how the text is edited
(:mod:`isthmus.encoding.jsonc_edit`), and what the settings mean (:mod:`isthmus.settings`).
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
"""Settings hold tokens."""


class SettingsFileError(IsthmusError):
    """The file cannot be changed, and was not; the text names it, and the line and column where it has an error."""


def change_file(path: Path, change: Callable[[str], str]) -> bool:
    """Replace the file's text (empty for a missing file) by what `change` makes of it; return whether it differs.

    `change` may be called several times: when another program changes the file meanwhile, it gets the new text.

    Raises:
        SettingsFileError: the file cannot be read, is not JSON for `change` (JsoncError), or cannot be written.
    """
    if not path.parent.is_dir():
        if not _changed(path, b"", change):
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsFileError(f"{path.parent} cannot be made: {error.strerror or error}") from error
    with contextlib.ExitStack() as stack:
        # Among ourselves; whoever does not know of the lock is noticed when the file takes its place, or nearly so.
        with contextlib.suppress(OSError):
            stack.enter_context(exclusive(path.parent, _LOCK_SECONDS))
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileChangedError):
                return _change_once(path, change)
    raise SettingsFileError(f"{path} is changed by somebody else again and again; nothing was written")


def _change_once(path: Path, change: Callable[[str], str]) -> bool:
    """Do it once; raise FileChangedError when another program changed the file meanwhile."""
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
            f"{path}:{error.line}:{error.column}: {message}; mend the file first, nothing was written"
        ) from error
