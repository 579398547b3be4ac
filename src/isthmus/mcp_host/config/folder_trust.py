"""The folders that a user trusts. Programs configured by a project's files run only in a trusted folder.

The rules are in Gemini CLI's ``~/.gemini/trustedFolders.json``: an object that maps absolute paths to ``TRUST_FOLDER``
(the folder and its subfolders), ``TRUST_PARENT`` (the parent folder and its subfolders) or ``DO_NOT_TRUST`` (neither
the folder nor its subfolders). The longest matching path decides; without one the folder is not trusted.
"""

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias, cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.encoding.jsonc_edit import set_member
from isthmus.settings.edit_file import change_file
from isthmus.settings.trust.first_sight import with_records

FolderTrust: TypeAlias = Callable[[Path], bool]
"""Function that returns whether the user trusts the programs that the files of a folder would start."""


def trusted_folders_path(home: Path) -> Path:
    """Return the path of the file below the home folder."""
    return home / ".gemini" / "trustedFolders.json"


class TrustRule(StrEnum):
    """The file's rule for a folder."""

    FOLDER = "TRUST_FOLDER"
    PARENT = "TRUST_PARENT"
    NOT = "DO_NOT_TRUST"


def is_trusted(folder: Path, rules: Mapping[str, str], within: Path | None = None) -> bool | None:
    """Return whether the rules of the file trust `folder` (a resolved path); None if no rule matches.

    With `within`, a resolved path, only rules for it and for folders below it count.
    """
    best, trusts = -1, None
    for path, rule in rules.items():
        if (place := _real(path)) is None:
            continue
        if rule == TrustRule.PARENT:
            place = place.parent
        elif rule not in (TrustRule.FOLDER, TrustRule.NOT):
            continue
        if within is not None and not place.is_relative_to(within):
            continue
        depth = len(place.parts)
        if (folder == place or place in folder.parents) and depth >= best:
            # Of two rules for one folder, DO_NOT_TRUST wins.
            trusts = rule != TrustRule.NOT and (depth > best or trusts is True)
            best = depth
    return trusts


def stated_trust(home: Path, folder: Path, within: Path | None = None) -> bool | None:
    """Return whether the user's file trusts a folder; None if no rule matches or it cannot be read. Blocking.

    With `within`, only rules for that folder and for folders below it count.
    """
    try:
        rules = _rules(trusted_folders_path(home).read_text(encoding="utf-8"))
        return is_trusted(folder.resolve(), rules, None if within is None else within.resolve())
    except (OSError, UnicodeDecodeError, JsoncError):
        return None


def file_trust(home: Path) -> FolderTrust:
    """Return a check against the user's file, which is read for each check. An unreadable file trusts no folder.

    A trusted folder that is first used has a record made of what its files start.
    """
    return with_records(lambda folder: stated_trust(home, folder) is True, home)


def state_trust(home: Path, folder: Path, rule: TrustRule) -> None:
    """Set the rule for `folder` in the user's file; its other rules and its comments stay. Blocking.

    Raises:
        SettingsFileError: the file cannot be changed; it is unchanged.
    """
    place = folder.resolve()

    def with_rule(text: str) -> str:
        # Change all spellings of the folder: another one could contradict the new rule.
        names = [path for path in _rules(text) if _real(path) == place]
        for name in names or [str(place)]:
            text = set_member(text, [name], rule.value)
        return text

    change_file(trusted_folders_path(home), with_rule)


def _real(path: str) -> Path | None:
    """Return the path without links; None if no folder can have this name (with a NUL or a lone surrogate)."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return None


def _rules(text: str) -> Mapping[str, str]:
    """Return the rules in a file's text; raises JsoncError."""
    rules: object = parse(text) if text.strip() else {}
    if not isinstance(rules, dict):
        return {}
    return {path: rule for path, rule in cast("dict[str, object]", rules).items() if isinstance(rule, str)}
