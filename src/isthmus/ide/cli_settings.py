"""Reads the settings files of agent CLIs, to explain why one that finds an editor does not use it or shows no diffs.

A file that cannot be read, or is not JSON, counts as empty: its CLI reports it itself. None of them is ever changed.
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
"""Modes, by their names in settings, in which a CLI writes files without asking, and so shows no diff."""

Settings: TypeAlias = Mapping[str, Any]


def read_settings(path: Path) -> Settings | None:
    """Return the object in a settings file; None if there is none."""
    try:
        value: object = parse(read_regular(path, MAXIMUM_BYTES).decode())
    except (OSError, UnicodeDecodeError, JsoncError):
        return None
    return cast("Settings", value) if isinstance(value, dict) else None


def read_all(paths: Iterable[Path]) -> list[Settings]:
    """Return the objects in those of the settings files that hold one, in order."""
    return [values for path in paths if (values := read_settings(path)) is not None]


def last_value(files: Sequence[Settings], key: str, otherwise: object = None) -> object:
    """Return the value of a dotted ``key`` in the last of the files that has one, or else ``otherwise``."""
    for values in reversed(files):
        found: object = values
        for name in key.split("."):
            found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return otherwise


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder, as a CLI with this environment finds it."""
    return Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - without a home it stays as it is
