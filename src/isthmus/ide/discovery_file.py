"""Reading the files by which IDEs announce themselves to agent CLIs, whatever the protocol.

Only what all protocols share: the file is a regular one of this user, of bounded size, and holds a JSON object.
Blocking file access. What the object means is in the ``finding`` module of each protocol.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.file_uri import is_file_name

MAXIMUM_FILE_BYTES = 64 * 1024
MAXIMUM_FILES = 200
"""So many of a folder are looked at: a crash-prone editor leaves them behind, and in /tmp others may write, too."""


class UnusableFileError(IsthmusError):
    """A discovery file that no client can use; the text says why."""


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A discovery file that is of no use here, and why; ``source`` is its path, or what of the environment named it."""

    source: str
    reason: str


def read_object(path: Path) -> JsonObject:
    """Return the JSON object in a regular file that is ours; what somebody else wrote is not trusted.

    Raises:
        UnusableFileError: it is not such a file, cannot be read, or holds no JSON object.
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
    """Yield the files of a folder whose names match, in their order, this user's own first."""
    try:
        with os.scandir(folder) as entries:
            found = [(not is_ours(entry), entry.name) for entry in entries if name.fullmatch(entry.name)]
    except OSError:
        return
    for _, each in sorted(found)[:MAXIMUM_FILES]:
        yield folder / each


def announces(path: Path, token: str) -> bool:
    """Return whether the file still leads clients to a server: it is there, whole, and names this token.

    Nothing else is looked at: people patch the process id for agents in containers. One that cannot be judged, on a
    disk that shows another owner for instance, does: to write it again would change nothing.
    """
    try:
        status = path.stat()
        if status.st_uid != os.getuid() or status.st_size > MAXIMUM_FILE_BYTES:
            return True
        return read_object(path).get("authToken") == token
    except (OSError, UnusableFileError):
        return False


def number(value: object) -> int | None:
    """Return a number, or text that is one: real clients write either."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return int(value)
    return None


def port_number(value: object) -> int | None:
    """Return a number that can be a TCP port; None for anything else."""
    port = number(value)
    return port if port is not None and 0 < port < 65536 else None


def folders_of(values: Iterable[object]) -> tuple[str, ...]:
    """Those of the values that can be workspace folders: text that a folder on disk can be called."""
    return tuple(value for value in values if isinstance(value, str) and value and is_file_name(value))


def mismatch(root: str, folders: tuple[str, ...]) -> str | None:
    """Why a resolved folder does not lie in these workspace folders; None when it does."""
    if any(Path(root).is_relative_to(os.path.realpath(folder)) for folder in folders):
        return None
    return f"its folders are {os.pathsep.join(folders)}, which do not contain {root}"


def is_ours(entry: "os.DirEntry[str]") -> bool:
    """Return whether what stands in a folder belongs to this user, wherever it may lead."""
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:  # it has just vanished
        return False


def _own_file(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableFileError("expected a regular file")
        if status.st_uid != os.getuid():
            raise UnusableFileError(f"it belongs to another user (uid {status.st_uid})")
        if status.st_size > MAXIMUM_FILE_BYTES:
            raise UnusableFileError(f"expected at most {MAXIMUM_FILE_BYTES} bytes")
        return file.read(MAXIMUM_FILE_BYTES)
