"""Finds the items in the values of a project's settings files, and leaves out those that the user did not agree to.

Paths are resolved; nothing else is read. Not here: the other files (:mod:`isthmus.settings.trust.reading`).
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, assert_never, cast

from isthmus.encoding.json_shapes import as_list, is_object
from isthmus.record import record
from isthmus.settings.claude_keys import ClaudeKey
from isthmus.settings.keys import KEYS, MCP_SERVERS
from isthmus.settings.setting_key import Setter
from isthmus.settings.trust.items import ItemKind, ProjectItem

SETTINGS = ".gemini/settings.json"
CLAUDE_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
MCP_FILE = ".mcp.json"

Keep: TypeAlias = Callable[[ProjectItem], bool]
"""Function that returns whether an item stays in the values of its file."""
FolderOutside: TypeAlias = Callable[[str], Path | None]
"""Function that returns the resolved path of a named folder if it is outside the project, otherwise None."""

GEMINI_KEYS: Mapping[str, ItemKind] = MappingProxyType(
    {key.name: key.item for key in KEYS.values() if key.setter is Setter.TRUSTED}
)
"""Keys of ``.gemini/settings.json`` that a trusted folder may set, with the kind of their items."""
CLAUDE_KEYS: Mapping[str, ItemKind] = MappingProxyType(
    {ClaudeKey.HOOKS.value: ItemKind.HOOK, ClaudeKey.FOLDERS.value: ItemKind.FOLDER}
)
"""Keys of Claude Code's settings that count in a trusted folder."""
MCP_KEYS: Mapping[str, ItemKind] = MappingProxyType({MCP_SERVERS.name: ItemKind.SERVER})
"""Keys of ``.mcp.json``."""


@record
class SettingsForm:
    """Rules for the items of a file: its path in the project, its keys, and how folders that it names are resolved."""

    file: str
    keys: Mapping[str, ItemKind]
    outside: FolderOutside

    def filtered(self, values: Mapping[str, object], keep: Keep) -> Mapping[str, object]:
        """Return the values of the file without the items that are not kept. The given values are not changed."""
        for key, kind in self.keys.items():
            values = self._filtered_at(values, key.split("."), key, kind, keep)
        return values

    def items(self, values: Mapping[str, object]) -> tuple[ProjectItem, ...]:
        """Return all items of the file."""
        found: list[ProjectItem] = []

        def collect(item: ProjectItem) -> bool:
            found.append(item)
            return True

        self.filtered(values, collect)
        return tuple(found)

    def server(self, name: str, entry: object) -> ProjectItem:
        """Return the item of an entry of ``mcpServers``."""
        return ProjectItem(ItemKind.SERVER, self.file, name, entry)

    def _filtered_at(
        self, values: Mapping[str, object], path: list[str], key: str, kind: ItemKind, keep: Keep
    ) -> Mapping[str, object]:
        name, inner = path[0], path[1:]
        if values.get(name) is None:
            return values
        if inner:
            nested = values[name]
            return {**values, name: self._filtered_at(nested, inner, key, kind, keep)} if is_object(nested) else values
        kept = self._kept(values[name], key, kind, keep)
        return {other: value for other, value in {**values, name: kept}.items() if other != name or kept is not None}

    def _kept(self, value: object, key: str, kind: ItemKind, keep: Keep) -> object:
        """Return the value of a key without what is not kept; None if nothing stays. Wrong forms stay as they are."""
        match kind:
            case ItemKind.SERVER:
                return _filtered_object(value, lambda name, entry: keep(self.server(name, entry)))
            case ItemKind.HOOK:
                return self._hooks(value, keep)
            case ItemKind.FOLDER:
                return self._folders(value, key, keep)
            case ItemKind.SETTING:
                return value if keep(ProjectItem(kind, self.file, key, value)) else None
            case ItemKind.COMMAND | ItemKind.VARIABLE | ItemKind.SKILL | ItemKind.SUBAGENT:
                raise ValueError(f"{kind.value} is not a kind of a settings file's keys")
            case _:
                assert_never(kind)

    def _hooks(self, value: object, keep: Keep) -> object:
        if not is_object(value):
            return value
        return {event: self._groups(event, groups, keep) for event, groups in value.items()}

    def _groups(self, event: str, groups: object, keep: Keep) -> object:
        if not isinstance(groups, list):
            return groups
        return [self._group(event, group, keep) for group in cast("list[object]", groups)]

    def _group(self, event: str, group: object, keep: Keep) -> object:
        if not is_object(group) or not isinstance(group.get("hooks"), list):
            return group
        about = {name: value for name, value in group.items() if name != "hooks"}
        kept = [
            handler
            for handler in as_list(group["hooks"])
            if keep(ProjectItem(ItemKind.HOOK, self.file, event, {**about, "hook": handler}))
        ]
        return {**group, "hooks": kept}

    def _folders(self, value: object, key: str, keep: Keep) -> object:
        def is_kept(name: object) -> bool:
            if not isinstance(name, str) or (place := self.outside(name)) is None:
                return True
            return keep(ProjectItem(ItemKind.FOLDER, self.file, key, [name, str(place)]))

        names = cast("list[object]", value) if isinstance(value, list) else [value]
        kept = [name for name in names if is_kept(name)]
        return kept if isinstance(value, list) else (value if kept else None)


def _filtered_object(value: object, keep: Callable[[str, object], bool]) -> object:
    if not is_object(value):
        return value
    return {name: entry for name, entry in value.items() if keep(name, entry)}


def form_of(file: str, project: Path, home: Path) -> SettingsForm:
    """Return the form of one of a project's settings files, named by its path in the project."""
    keys = {SETTINGS: GEMINI_KEYS, MCP_FILE: MCP_KEYS}.get(file, CLAUDE_KEYS)
    return SettingsForm(file, keys, partial(outside, project, home))


def outside(project: Path, home: Path, name: str) -> Path | None:
    """Return the resolved path of a folder that a project names, if it is outside the project; otherwise None.

    One that no project may name (:func:`folder_refusal`) is None as well: nobody is asked about it.
    """
    place = _resolved(project, home, name)
    if place is None or place.is_relative_to(os.path.realpath(project)):
        return None
    return place if folder_refusal(project, home, name) is None else None


def folder_refusal(project: Path, home: Path, name: str) -> str | None:
    """Return why a project may not name a folder as a further one, whatever the user trusts; None if it may.

    Home folders are refused as a whole, and folders whose names begin with a dot: keys and settings are there.
    """
    place = _resolved(project, home, name)
    if place is None:
        return "it leads nowhere"
    own, users = Path(os.path.realpath(project)), Path(os.path.realpath(home))
    if place.is_relative_to(own):
        return None
    if users.is_relative_to(place):
        return "it contains your home folder"
    shared = os.path.commonpath((own, place))
    if any(part.startswith(".") for part in place.relative_to(shared).parts):
        return "settings and keys are in folders whose names begin with a dot"
    if place.is_relative_to(users / "Library"):
        return "it is in your Library folder"
    return None


def _resolved(project: Path, home: Path, name: str) -> Path | None:
    try:
        named = home / name[1:].lstrip("/") if name == "~" or name.startswith("~/") else Path(name).expanduser()
        return Path(os.path.realpath(project / named))
    except (RuntimeError, ValueError):
        return None  # no such user, or a NUL
