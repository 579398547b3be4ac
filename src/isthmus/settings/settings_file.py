"""One settings file: reads its text and values, and refuses a system's file that others can have written. Blocks."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.json_shapes import as_object
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.errors import IsthmusError
from isthmus.files.atomic import read_regular
from isthmus.record import record

MAXIMUM_BYTES = 4 * 1024 * 1024
"""Maximum size of a settings file in bytes."""


class SettingsError(IsthmusError):
    """A settings file cannot be used; the text names the file, and the line and column or the key."""


class Owner(Enum):
    """Owner of a settings file."""

    SYSTEM = "system"
    PROJECT = "project"
    USER = "user"
    DEFAULTS = "system defaults"


@record
class SettingsSource:
    """A settings file and its values; ``former_names`` are the older names of keys, by key, which still count."""

    owner: Owner
    path: Path
    values: Mapping[str, Any] = field(repr=False)
    former_names: Mapping[str, str] = field(repr=False)

    def get(self, key: str) -> object:
        """Return the value of a key, else the one under its former name, else None."""
        return next((value for _, value in self.named(key)), None)

    def named(self, key: str) -> Iterator[tuple[str, object]]:
        """Yield the value of a key and the one under its former name, each with its name in the file."""
        for name in (key, self.former_names.get(key)):
            if name is not None and (value := value_at(self.values, name)) is not None:
                yield name, value


def value_at(values: Mapping[str, object], key: str) -> object:
    """Return the value under a name with dots between the names of objects; None if there is none."""
    found: object = values
    for name in key.split("."):
        found = as_object(found).get(name)
    return found


def is_missing(path: Path) -> bool:
    """Return whether there is nothing at a path; False if that cannot be seen, so that reading it says why."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def settings_text(path: Path) -> str:
    r"""Return the text of a settings file, with ``\n`` as line ends.

    Only regular files are read: a cloned project may contain a link to a device, whose text would never end.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger than `MAXIMUM_BYTES`; FileNotFoundError also for
            a socket, with which a sandbox keeps commands from creating the file.
        UnicodeDecodeError: it is not UTF-8.
    """
    try:
        data = read_regular(path, MAXIMUM_BYTES)
    except OSError as error:
        if error.errno == errno.ENXIO and path.is_socket():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
        raise
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def read_values(path: Path) -> Mapping[str, Any] | None:
    """Return the values of a settings file; None if it does not exist.

    Raises:
        SettingsError: it is not JSON, or cannot be read.
    """
    try:
        text = settings_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    try:
        value: object = parse(text) if text.strip() else {}
    except JsoncError as error:
        raise SettingsError(f"{path}, {error}. Correct the file, or move it away.") from error
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: expected an object {{...}} at the top, found {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def insecure_system_file(path: Path) -> str | None:
    """Return why a system file is not used: an account other than root and the user's may have written it."""
    for place in (path, path.parent):
        try:
            status = place.stat()
        except OSError:
            return None  # Reading the file reports the problem.
        if status.st_uid not in (0, os.getuid()):
            return f"{path} is not used: {place} belongs to another user"
        is_sticky_folder = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky_folder:
            return f"{path} is not used: others can write to {place}"
    return None
