"""Reads the settings files of a user, a project and the system, and selects those that count for a key.

Their order is Gemini CLI's: system, project, user, system defaults. A system file counts only if it belongs to root or
to the user and nobody else can write to it. Blocks.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.errors import IsthmusError
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.settings.keys import KEYS, OLD_NAMES, Setter
from isthmus.settings.trust.agreements import agreed_values
from isthmus.settings.trust.forms import SETTINGS
from isthmus.settings.trust.items import ProjectItem

MAXIMUM_BYTES = 4 * 1024 * 1024
"""Maximum size of a settings file in bytes."""
OF_OWNER = "the settings of the server's owner"
"""Name that clients of a server get in place of a path."""
_SYSTEM_FOLDERS = {"darwin": "/Library/Application Support/GeminiCli"}


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
    """A settings file and its values."""

    owner: Owner
    path: Path
    values: Mapping[str, Any] = field(repr=False)

    def get(self, key: str) -> object:
        """Return the value of a key, else the one under its old name, else None."""
        return next((value for _, value in self.named(key)), None)

    def named(self, key: str) -> Iterator[tuple[str, object]]:
        """Yield the value of a key and the one under its old name, each with its name in the file."""
        for name in (key, OLD_NAMES.get(key)):
            if name is not None and (value := self._at(name)) is not None:
                yield name, value

    def _at(self, key: str) -> object:
        found: object = self.values
        for name in key.split("."):
            found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
        return found


@record
class Sources:
    """The existing settings files, in the order in which they count.

    ``names_files``: messages may contain their paths. Clients of a server do not see them, since paths name its owner.
    """

    files: tuple[SettingsSource, ...]
    is_trusted: bool = False
    problems: tuple[str, ...] = ()
    """Lines about files that are not used, with the reason."""
    names_files: bool = True
    left_out: tuple[ProjectItem, ...] = ()
    """Items of the project's file that the user did not agree to, and that are not in its values."""

    def where(self, source: SettingsSource) -> str:
        """Return the name of a file in messages."""
        if self.names_files:
            return str(source.path)
        return "the project's .gemini/settings.json" if source.owner is Owner.PROJECT else OF_OWNER

    def of(self, key: str) -> Sequence[SettingsSource]:
        """Return the files that may set a key; raise KeyError for a key that is not in the table."""
        setter = KEYS[key].setter
        from_project = setter is Setter.ANYONE or (setter is Setter.TRUSTED and self.is_trusted)
        return [file for file in self.files if from_project or file.owner is not Owner.PROJECT]

    @property
    def files_of_user(self) -> Sequence[SettingsSource]:
        """The files without the project's."""
        return [file for file in self.files if file.owner is not Owner.PROJECT]

    def of_user(self, key: str) -> Sequence[SettingsSource]:
        """Return the files that may set a key, without the project's."""
        return [file for file in self.of(key) if file.owner is not Owner.PROJECT]

    def of_project(self, key: str) -> Sequence[SettingsSource]:
        """Return the project's file, if it may set a key."""
        return [file for file in self.of(key) if file.owner is Owner.PROJECT]

    def ignored(self) -> Iterator[tuple[SettingsSource, str]]:
        """Yield the project's file with each key in it that it may not set."""
        for file in self.files:
            if file.owner is Owner.PROJECT:
                yield from ((file, key) for key in KEYS if file.get(key) is not None and file not in self.of(key))


def user_settings_path(home: Path) -> Path:
    """Return ``~/.gemini/settings.json``."""
    return home / ".gemini" / "settings.json"


def project_settings_path(project: Path) -> Path:
    """Return ``.gemini/settings.json`` of a project."""
    return project / ".gemini" / "settings.json"


def system_settings_path(environment: Mapping[str, str]) -> Path:
    """Return the file with which the machine's administrator overrides all users' settings."""
    named = environment.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    return Path(named) if named else system_folder() / "settings.json"


def system_defaults_path(environment: Mapping[str, str]) -> Path:
    """Return the file with the values of keys that no other file has."""
    named = environment.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    return Path(named) if named else system_settings_path(environment).parent / "system-defaults.json"


def system_folder() -> Path:
    """Return the folder of Gemini CLI's files for a whole machine."""
    return Path(_SYSTEM_FOLDERS.get(sys.platform, "/etc/gemini-cli"))


def read_sources(project: Path, home: Path, environment: Mapping[str, str], *, is_trusted: bool) -> Sources:
    """Read the files for work in `project` by the user whose home folder is `home`.

    Raises:
        SettingsError: one of them is not JSON (line and column are named), or cannot be read.
    """
    user, own = user_settings_path(home), project_settings_path(project)
    places = [
        (Owner.SYSTEM, system_settings_path(environment)),
        (Owner.PROJECT, own),
        (Owner.USER, user),
        (Owner.DEFAULTS, system_defaults_path(environment)),
    ]
    files: list[SettingsSource] = []
    problems: list[str] = []
    left_out: tuple[ProjectItem, ...] = ()
    for owner, path in places:
        if is_missing(path) or (owner is Owner.PROJECT and os.path.realpath(user) == os.path.realpath(own)):
            continue
        if owner in (Owner.SYSTEM, Owner.DEFAULTS) and (problem := insecure_system_file(path)) is not None:
            problems.append(problem)
        elif (values := read_values(path)) is not None:
            if owner is Owner.PROJECT:
                values, left_out = agreed_values(values, SETTINGS, project, home)
            files.append(SettingsSource(owner, path, values))
    return Sources(tuple(files), is_trusted, tuple(problems), left_out=left_out)


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
