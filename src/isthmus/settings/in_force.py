"""Settings that are in force, with their files, as text that may be shown: secrets are left out.

Only values of the keys whose rows say so are shown; of others a user sees the names or the number of their parts,
because commands, URLs, headers and environments may contain secrets.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_never, cast

from isthmus.record import record
from isthmus.settings.keys import KEYS
from isthmus.settings.setting_key import SettingKey
from isthmus.settings.settings_file import Owner, SettingsSource
from isthmus.settings.sources import Sources
from isthmus.settings.values import Merge
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line, with_ellipsis

LONGEST_VALUE = 200
"""Maximum number of characters of a value."""
MAXIMUM_PARTS = 10
"""Maximum number of entries of a value that are shown."""


@record
class SettingInForce:
    """A key, its value as text without secrets, and the file that states it."""

    key: str
    value: str
    path: Path


def settings_in_force(files: Sources) -> tuple[SettingInForce, ...]:
    """Return the settings that count, in the order of :data:`isthmus.settings.keys.KEYS`."""
    return tuple(
        SettingInForce(key.name, _shown(key, source.get(key.name)), source.path)
        for key in KEYS.values()
        for source in _counting(files, key)
    )


def _counting(files: Sources, key: SettingKey[object]) -> Iterator[SettingsSource]:
    """Yield the files whose value of a key counts."""
    sources = files.of(key)
    if together := key.reader.together:
        sources = [source for source in sources if any(source.get(name) is not None for name in together)][:1]
    found = [source for source in sources if source.get(key.name) is not None]
    match key.reader.merge:
        case Merge.FIRST:
            yield from found[:1]
        case Merge.APART:
            yield from [source for source in found if source.owner is Owner.PROJECT]
            yield from [source for source in found if source.owner is not Owner.PROJECT][:1]
        case Merge.ALL | Merge.MEMBERS:
            yield from found
        case _:
            assert_never(key.reader.merge)


def _shown(key: SettingKey[object], value: object) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return f"{{{_parts(list(cast('Mapping[str, object]', value)))}}}"
    if isinstance(value, list):
        items = cast("list[object]", value)
        if key.is_shown and all(isinstance(item, str) for item in items):
            return f"[{_parts(cast('list[str]', items))}]"
        return show_count(len(items), "value")
    return _cut(str(value)) if key.is_shown else "set"


def _parts(parts: Sequence[str]) -> str:
    shown = _cut(", ".join(_cut(part) for part in parts[:MAXIMUM_PARTS]))
    return f"{shown} and {len(parts) - MAXIMUM_PARTS} more" if len(parts) > MAXIMUM_PARTS else shown


def _cut(text: str) -> str:
    return with_ellipsis(visible_line(text[: LONGEST_VALUE + 1]), LONGEST_VALUE)
