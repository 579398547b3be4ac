"""Reads the files by which IDEs of any protocol announce themselves to agent CLIs.

Checks what all protocols require: a regular file of this user, of limited size, that contains a JSON object. File
access blocks. The ``finding`` module of each protocol interprets the object.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.files.atomic import reader_of
from isthmus.ide.file_uri import is_file_name
from isthmus.record import record

MAXIMUM_FILE_BYTES = 64 * 1024
MAXIMUM_FILES = 200
"""Maximum number of files read in a folder: crashed editors leave files, and other users can write to /tmp."""


class UnusableFileError(IsthmusError):
    """A discovery file that no client can use; the text is the reason."""


@record
class RejectedFile:
    """A rejected discovery file with the reason; ``source`` is its path, or the environment variable that named it."""

    source: str
    reason: str


def read_object(path: Path) -> JsonObject:
    """Return the JSON object in a regular file of this user; files of other users are not trusted.

    Raises:
        UnusableFileError: the file is not regular or not ours, cannot be read, or does not contain a JSON object.
    """
    try:
        value = json.loads(_own_file(path))
    except OSError as error:
        raise UnusableFileError(f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnusableFileError(f"expected a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise UnusableFileError(f"expected a JSON object, received {type(cast(object, value)).__name__}")
    return cast("dict[str, Any]", value)


def named_files(folder: Path, name: re.Pattern[str]) -> Iterator[Path]:
    """Yield at most 200 files of a folder with matching names, sorted, this user's own first."""
    try:
        with os.scandir(folder) as entries:
            found = [(not is_ours(entry), entry.name) for entry in entries if name.fullmatch(entry.name)]
    except OSError:
        return
    for _, each in sorted(found)[:MAXIMUM_FILES]:
        yield folder / each


def announces(path: Path, token: str) -> bool:
    """Return whether the file still leads clients to a server: it exists, is complete, and contains this token.

    Only the token is compared, because users patch the process id for agents in containers. A file that cannot be
    checked (for instance on a disk that reports another owner) counts as announcing: writing it again would not help.
    """
    try:
        status = path.stat()
        if status.st_uid != os.getuid() or status.st_size > MAXIMUM_FILE_BYTES:
            return True
        return read_object(path).get("authToken") == token
    except (OSError, UnusableFileError):
        return False


def number(value: object) -> int | None:
    """Return a value that is a number, or a string of digits, as an integer: real clients write both."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return int(value)
    return None


def port_number(value: object) -> int | None:
    """Return the value as a TCP port, or None if it cannot be one."""
    port = number(value)
    return port if port is not None and 0 < port < 65536 else None


def folders_of(values: Iterable[object]) -> tuple[str, ...]:
    """Return the values that can be workspace folders: strings that are possible file names."""
    return tuple(value for value in values if isinstance(value, str) and value and is_file_name(value))


def mismatch(root: str, folders: tuple[str, ...]) -> str | None:
    """Return the reason why a resolved folder is not in these workspace folders, or None if it is."""
    if any(Path(root).is_relative_to(os.path.realpath(folder)) for folder in folders):
        return None
    return f"its folders are {os.pathsep.join(folders)}, which do not contain {root}"


def is_ours(entry: "os.DirEntry[str]") -> bool:
    """Return whether a folder's entry belongs to this user; of a link, the link itself counts."""
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # it has just vanished
        return False


def _own_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with reader_of(descriptor) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFileError("expected a regular file")
        if status.st_uid != os.getuid():
            raise UnusableFileError(f"it belongs to another user (uid {status.st_uid})")
        if status.st_size > MAXIMUM_FILE_BYTES:
            raise UnusableFileError(f"expected at most {MAXIMUM_FILE_BYTES} bytes")
        return file.read(MAXIMUM_FILE_BYTES)
