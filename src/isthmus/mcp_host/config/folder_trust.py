"""Folders that a user trusts: what a project's files can start runs only there.

Kept in Gemini CLI's ``~/.gemini/trustedFolders.json``: an object of absolute paths, each ``TRUST_FOLDER`` (it and
what is below), ``TRUST_PARENT`` (the same for the folder around it) or ``DO_NOT_TRUST`` (neither it nor what is below).
The longest path that fits decides; without one the folder is not trusted. Deliberately not here: asking the user.
"""

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias, cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.encoding.jsonc_edit import set_member
from isthmus.settings.edit_file import change_file

FolderTrust: TypeAlias = Callable[[Path], bool]
"""Whether the user trusts what the files of this folder would start."""


def trusted_folders_path(home: Path) -> Path:
    """``~/.gemini/trustedFolders.json``."""
    return home / ".gemini" / "trustedFolders.json"


class TrustRule(StrEnum):
    """A rule of the file for a folder."""

    FOLDER = "TRUST_FOLDER"
    PARENT = "TRUST_PARENT"
    NOT = "DO_NOT_TRUST"


def is_trusted(folder: Path, rules: Mapping[str, str]) -> bool | None:
    """Return whether the rules of a trustedFolders.json trust `folder` (a resolved path); None: they do not say."""
    best, trusts = -1, None
    for path, rule in rules.items():
        if (place := _real(path)) is None:
            continue
        if rule == TrustRule.PARENT:
            place = place.parent
        elif rule not in (TrustRule.FOLDER, TrustRule.NOT):
            continue
        depth = len(place.parts)
        if (folder == place or place in folder.parents) and depth >= best:
            # Of two rules for one folder the one that does not trust it holds.
            trusts = rule != TrustRule.NOT and (depth > best or trusts is True)
            best = depth
    return trusts


def stated_trust(home: Path, folder: Path) -> bool | None:
    """Return the trust that the user's file states for a folder; None if it states none or cannot be read. Blocks."""
    try:
        return is_trusted(folder.resolve(), _rules(trusted_folders_path(home).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, JsoncError):
        return None


def file_trust(home: Path) -> FolderTrust:
    """Return the trust that the user's file states, read for each question; a file that is not JSON trusts nothing."""
    return lambda folder: stated_trust(home, folder) is True


def state_trust(home: Path, folder: Path, rule: TrustRule) -> None:
    """Write into the user's file what counts for `folder`; its other rules and its comments stay. Blocks.

    Raises:
        SettingsFileError: the file cannot be changed, and was not.
    """
    place = folder.resolve()

    def with_rule(text: str) -> str:
        # Another spelling of the same folder would go on to say something else.
        names = [path for path in _rules(text) if _real(path) == place]
        for name in names or [str(place)]:
            text = set_member(text, [name], rule.value)
        return text

    change_file(trusted_folders_path(home), with_rule)


def _real(path: str) -> Path | None:
    """Return the path without links; None for what no folder can be called (a NUL in it, half a surrogate pair)."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return None


def _rules(text: str) -> Mapping[str, str]:
    """Return the rules that a file's text states; raises JsoncError."""
    rules: object = parse(text) if text.strip() else {}
    if not isinstance(rules, dict):
        return {}
    return {path: rule for path, rule in cast("dict[str, object]", rules).items() if isinstance(rule, str)}
