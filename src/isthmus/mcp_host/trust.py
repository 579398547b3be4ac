"""Which folders a person trusts: what a project's files can start, runs only there.

Read from Gemini CLI's ``~/.gemini/trustedFolders.json``: an object of absolute paths, each ``TRUST_FOLDER`` (it and
what is below), ``TRUST_PARENT`` (the same for the folder around it) or ``DO_NOT_TRUST`` (neither it nor what is below).
The longest path that fits decides; no path that fits means no trust. Asking the person is a front's business.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias, cast

from isthmus.jsonc import JsoncError, parse

FolderTrust: TypeAlias = Callable[[Path], bool]
"""Whether the person trusts what the files of this folder would start."""


def trusted_folders_path(home: Path) -> Path:
    """``~/.gemini/trustedFolders.json``."""
    return home / ".gemini" / "trustedFolders.json"


def is_trusted(folder: Path, rules: Mapping[str, str]) -> bool:
    """Whether the rules of a trustedFolders.json trust `folder` (a resolved path)."""
    best, trusts = -1, False
    for path, rule in rules.items():
        place = Path(os.path.realpath(path))
        if rule == "TRUST_PARENT":
            place = place.parent
        elif rule not in ("TRUST_FOLDER", "DO_NOT_TRUST"):
            continue
        depth = len(place.parts)
        if (folder == place or place in folder.parents) and depth >= best:
            # Of two rules for one folder the one that does not trust it holds.
            trusts = rule != "DO_NOT_TRUST" and (depth > best or trusts)
            best = depth
    return trusts


def file_trust(home: Path) -> FolderTrust:
    """The trust that the person's file states, read anew for each question; a file that is not JSON trusts nothing."""

    def trusts(folder: Path) -> bool:
        try:
            rules: object = parse(trusted_folders_path(home).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, JsoncError):
            return False
        if not isinstance(rules, dict):
            return False
        texts = {path: rule for path, rule in cast("dict[str, object]", rules).items() if isinstance(rule, str)}
        return is_trusted(folder.resolve(), texts)

    return trusts
