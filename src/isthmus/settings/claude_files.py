"""Reads the settings files of Claude Code that count for work in a folder. Blocks.

Its hooks are in :mod:`isthmus.settings.hook_files`, its permission rules in :mod:`isthmus.settings.permission_files`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from isthmus.record import record
from isthmus.settings.claude_keys import ClaudeKey
from isthmus.settings.settings_file import (
    Owner,
    SettingsError,
    insecure_system_file,
    is_missing,
    read_values,
    value_at,
)
from isthmus.settings.sources import OF_OWNER, Sources
from isthmus.settings.trust.agreements import agreed_values
from isthmus.settings.trust.items import ProjectItem

_SYSTEM_FOLDERS = (Path("/etc/claude-code"), Path("/Library/Application Support/ClaudeCode"))


@record
class ClaudeFile:
    """A settings file of Claude Code; ``where`` is its name in messages."""

    owner: Owner
    path: Path
    where: str
    values: Mapping[str, Any] = field(repr=False)

    def get(self, key: ClaudeKey) -> object:
        """Return the value of a key; None if the file does not have it."""
        return value_at(self.values, key.value)


@record
class ClaudeFiles:
    """The existing files: the machine's, the user's, then the project's, also those of a folder that is not trusted.

    ``folder`` has the user's file. ``unreadable`` are the names of files that cannot be read, and ``notices`` are lines
    about files that somebody else may have written.
    """

    folder: Path
    files: tuple[ClaudeFile, ...] = ()
    unreadable: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    left_out: tuple[ProjectItem, ...] = ()
    """Items of the project's files that the user did not agree to, and that are not in their values."""


def read_claude_files(files: Sources, project: Path, home: Path, environment: Mapping[str, str]) -> ClaudeFiles:
    """Return the files of Claude Code for work in ``project`` by the user whose home folder is ``home``."""
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    found: list[ClaudeFile] = []
    unreadable: list[str] = []
    notices: list[str] = []
    left_out: list[ProjectItem] = []
    for owner, path in _places(folder, project):
        if is_missing(path):
            continue
        where = str(path)
        if not files.names_files:
            where = f"the project's .claude/{path.name}" if owner is Owner.PROJECT else OF_OWNER
        try:
            if owner is Owner.SYSTEM and (problem := insecure_system_file(path)) is not None:
                notices.append(problem)
            elif (values := read_values(path)) is not None:
                if owner is Owner.PROJECT:
                    file = f".claude/{path.name}"
                    values, more = agreed_values(values, file, project, home)
                    left_out.extend(more)
                found.append(ClaudeFile(owner, path, where, values))
        except (SettingsError, ValueError):
            unreadable.append(where)
    return ClaudeFiles(folder, tuple(found), tuple(unreadable), tuple(notices), tuple(left_out))


def _places(folder: Path, project: Path) -> Iterator[tuple[Owner, Path]]:
    """Yield the files that may exist; in place of a folder's files the folder, if it cannot be listed."""
    for system in _SYSTEM_FOLDERS:
        if is_missing(system):
            continue
        yield Owner.SYSTEM, system / "managed-settings.json"
        try:
            more = sorted((system / "managed-settings.d").iterdir())
        except FileNotFoundError:
            more = []
        except OSError:
            yield Owner.SYSTEM, system / "managed-settings.d"
            more = []
        yield from ((Owner.SYSTEM, path) for path in more if path.suffix == ".json")
    yield Owner.USER, folder / "settings.json"
    own = project / ".claude"
    if own != folder:
        yield from ((Owner.PROJECT, own / name) for name in ("settings.json", "settings.local.json"))
