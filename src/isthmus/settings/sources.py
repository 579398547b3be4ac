"""Reads the settings files of a user, a project and the system, and selects those that count for a key.

Their order is Gemini CLI's: system, project, user, system defaults. A system file counts only if it belongs to root or
to the user and nobody else can write to it. Blocks.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, assert_never

from isthmus.record import record
from isthmus.settings.keys import FORMER_NAMES, KEYS
from isthmus.settings.setting_key import Setter, SettingKey
from isthmus.settings.settings_file import Owner, SettingsSource, insecure_system_file, is_missing, read_values
from isthmus.settings.trust.agreements import agreed_values
from isthmus.settings.trust.forms import SETTINGS
from isthmus.settings.trust.items import ProjectItem

T = TypeVar("T")

OF_OWNER = "the settings of the server's owner"
"""Name that clients of a server get in place of a path."""
_SYSTEM_FOLDERS = {"darwin": "/Library/Application Support/GeminiCli"}


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

    def read(self, key: SettingKey[T]) -> T:
        """Return the value of a key; its default if no file that may set it has it.

        Raises:
            SettingsError: a value has another form; the text names its file and the key.
        """
        return key.read(self.of(key))

    def of(self, key: SettingKey[object]) -> Sequence[SettingsSource]:
        """Return the files that may set a key."""
        match key.setter:
            case Setter.USER:
                return self.files_of_user
            case Setter.TRUSTED:
                return self.files if self.is_trusted else self.files_of_user
            case Setter.ANYONE:
                return self.files
            case _:
                assert_never(key.setter)

    @property
    def files_of_user(self) -> Sequence[SettingsSource]:
        """The files without the project's."""
        return [file for file in self.files if file.owner is not Owner.PROJECT]

    def of_project(self, key: SettingKey[object]) -> Sequence[SettingsSource]:
        """Return the project's file, if it may set a key."""
        return [file for file in self.of(key) if file.owner is Owner.PROJECT]

    def ignored(self) -> Iterator[tuple[SettingsSource, SettingKey[object]]]:
        """Yield the project's file with each key in it that it may not set."""
        for file in self.files:
            if file.owner is Owner.PROJECT:
                for key in KEYS.values():
                    if file.get(key.name) is not None and file not in self.of(key):
                        yield file, key


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
            files.append(SettingsSource(owner, path, values, FORMER_NAMES))
    return Sources(tuple(files), is_trusted, tuple(problems), left_out=left_out)
