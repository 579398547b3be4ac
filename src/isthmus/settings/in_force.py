"""Settings that are in force, with their files, as text that may be shown: secrets are left out.

Only values of the keys that are named here are shown; of others a user sees the names or the number of their parts,
because commands, URLs, headers and environments may contain secrets.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from isthmus.record import record
from isthmus.settings.keys import KEYS, Merge
from isthmus.settings.settings_file import SettingsSource
from isthmus.settings.sources import Sources
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line, with_ellipsis

LONGEST_VALUE = 200
"""Maximum number of characters of a value."""
MAXIMUM_PARTS = 10
"""Maximum number of entries of a value that are shown."""
_SHOWN = frozenset(
    {
        "isthmus.model",
        "isthmus.fallbackModels",
        "isthmus.thinkingEffort",
        "model.name",
        "general.defaultApprovalMode",
        "tools.allowed",
        "tools.exclude",
        "tools.core",
        "tools.confirmationRequired",
        "policyPaths",
        "adminPolicyPaths",
        "tools.sandbox",
        "tools.sandboxAllowedPaths",
        "skills.disabled",
        "context.fileName",
        "context.includeDirectories",
        "advanced.excludedEnvVars",
        "mcp.allowed",
        "mcp.excluded",
        "isthmus.approval.readOnlyTools",
        "isthmus.toolSearch",
        "isthmus.journal.maxSize",
        "isthmus.terminal.attention",
        "isthmus.terminal.theme",
        "isthmus.parts",
        "isthmus.tokenStore",
    }
)
_JOINED = frozenset({"mcpServers"})
"""Keys whose members come from every file, though the first file counts for each member."""
_SANDBOX = ("tools.sandbox", "tools.sandboxAllowedPaths", "tools.sandboxNetworkAccess")
"""Keys that are read together, from the first file that has one of them."""


@record
class SettingInForce:
    """A key, its value as text without secrets, and the file that states it."""

    key: str
    value: str
    path: Path


def settings_in_force(files: Sources) -> tuple[SettingInForce, ...]:
    """Return the settings that count, in the order of :data:`isthmus.settings.keys.KEYS`."""
    return tuple(
        SettingInForce(key, _shown(key, source.get(key)), source.path)
        for key in KEYS
        for source in _counting(files, key)
    )


def _counting(files: Sources, key: str) -> Iterator[SettingsSource]:
    """Yield the files whose value of a key counts."""
    sources: Sequence[SettingsSource] = files.of(key)
    if key in _SANDBOX:
        sources = [source for source in sources if any(source.get(name) is not None for name in _SANDBOX)][:1]
    found = [source for source in sources if source.get(key) is not None]
    yield from found if KEYS[key].merge is Merge.ALL or key in _JOINED else found[:1]


def _shown(key: str, value: object) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return f"{{{_parts(list(cast('Mapping[str, object]', value)))}}}"
    if isinstance(value, list):
        items = cast("list[object]", value)
        if key in _SHOWN and all(isinstance(item, str) for item in items):
            return f"[{_parts(cast('list[str]', items))}]"
        return show_count(len(items), "value")
    return _cut(str(value)) if key in _SHOWN else "set"


def _parts(parts: Sequence[str]) -> str:
    shown = _cut(", ".join(_cut(part) for part in parts[:MAXIMUM_PARTS]))
    return f"{shown} and {len(parts) - MAXIMUM_PARTS} more" if len(parts) > MAXIMUM_PARTS else shown


def _cut(text: str) -> str:
    return with_ellipsis(visible_line(text[: LONGEST_VALUE + 1]), LONGEST_VALUE)
