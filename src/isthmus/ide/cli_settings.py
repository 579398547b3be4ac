"""Reads the settings files of agent CLIs, to explain why a CLI ignores an editor that it finds or shows no diffs.

A file that cannot be read or is not JSON counts as empty: its CLI reports the error itself. No file is changed.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.files.atomic import read_regular

MAXIMUM_BYTES = 1024 * 1024
"""Maximum size of a settings file; a larger one counts as empty."""
AUTOMATIC_MODES = frozenset({"auto", "auto-edit", "auto_edit", "yolo", "acceptEdits", "bypassPermissions", "dontAsk"})
"""Names in settings of the modes in which a CLI writes files without asking, and therefore shows no diff."""

Settings: TypeAlias = Mapping[str, Any]


def read_settings(path: Path) -> Settings | None:
    """Return the object in a settings file; None if the file is missing or does not contain one."""
    try:
        value: object = parse(read_regular(path, MAXIMUM_BYTES).decode())
    except (OSError, UnicodeDecodeError, JsoncError):
        return None
    return cast("Settings", value) if isinstance(value, dict) else None


def read_all(paths: Iterable[Path]) -> list[Settings]:
    """Return the objects in the settings files, in order; files without an object are skipped."""
    return [values for path in paths if (values := read_settings(path)) is not None]


def last_value(files: Sequence[Settings], key: str, otherwise: object = None) -> object:
    """Return the value of a dotted ``key`` in the last file that has the key; ``otherwise`` if no file has it."""
    for values in reversed(files):
        found: object = values
        for name in key.split("."):
            found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return otherwise


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder as a CLI with this environment determines it."""
    return Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - without a home it stays as it is
