"""The table of settings keys against what is read: each look-up in a settings file is one of a key of the table."""

import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import isthmus
from isthmus.encoding.jsonc import parse
from isthmus.mcp_host.config import workspace_config
from isthmus.settings import load_settings, settings_file
from isthmus.settings.claude_keys import ClaudeKey
from isthmus.settings.guards import GUARDS
from isthmus.settings.keys import FORMER_NAMES, KEYS
from isthmus.settings.loading import load_folder_rules
from isthmus.settings.trust.reading import project_items
from support.extension_folders import install_extension
from support.hostile_settings import HOSTILE, write_settings

SOURCES = Path(isthmus.__file__).parent
NAMES = (*KEYS, *FORMER_NAMES.values(), *GUARDS, *(key.value for key in ClaudeKey))
"""All names that may be looked up: keys, their former names, and keys that are named because they have no effect."""
CLAUDE: dict[str, Any] = {
    "disableAllHooks": False,
    "hooks": {"PreToolUse": []},
    "permissions": {"deny": ["Read(x)"], "defaultMode": "plan", "additionalDirectories": ["../beside"]},
}


class Recorded(dict[str, Any]):
    """Object of a settings file that records the full names of the values that are looked up in it."""

    def __init__(self, values: dict[str, Any], seen: set[str], before: str = "") -> None:
        super().__init__({name: recorded(value, seen, f"{before}{name}.") for name, value in values.items()})
        self._seen = seen
        self._before = before

    def __getitem__(self, name: str) -> Any:
        self._seen.add(f"{self._before}{name}")
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._seen.add(f"{self._before}{name}")
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._seen.add(f"{self._before}{name}")
        return super().get(name, default)


def recorded(value: Any, seen: set[str], before: str = "") -> Any:
    return Recorded(cast("dict[str, Any]", value), seen, before) if isinstance(value, dict) else value


def is_of_table(name: str) -> bool:
    """Return whether a name is a key of the table, a section of keys, or a part of a key's value."""
    return any(f"{name}.".startswith(f"{key}.") or key.startswith(f"{name}.") for key in NAMES)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the names that are looked up in settings files."""
    names: set[str] = set()

    def parse_recorded(text: str) -> Any:
        return recorded(parse(text), names)

    for module in (settings_file, workspace_config):
        monkeypatch.setattr(module, "parse", parse_recorded)
    return names


def read_everything(folder: Path) -> None:
    """Read settings of a user and a project that have a value for each key, and those of Claude Code."""
    home, project = folder / "home", folder / "project"
    install_extension(home, "one", {"mcpServers": {"of-extension": {"command": "x"}}}, source_type="git")
    for place in (home, project):
        write_settings(place, HOSTILE)
        (place / ".claude").mkdir()
        (place / ".claude" / "settings.json").write_text(json.dumps(CLAUDE), "utf-8")
    for is_trusted in (False, True):
        load_settings(project, home, {}, is_trusted=is_trusted)
        workspace_config.load_configuration(project, home, {}, lambda _, answer=is_trusted: answer)
    load_folder_rules(project, home, {})
    project_items(project, home)


def test_what_is_looked_up_is_in_the_table_and_all_of_it(tmp_path: Path, seen: set[str]) -> None:
    read_everything(tmp_path)
    assert sorted(name for name in seen if not is_of_table(name)) == []
    assert sorted(set(KEYS) - seen) == []


def literal_look_ups(path: Path) -> Iterator[str]:
    """Yield the look-ups of a name as text in the values of a settings file, whether or not a test comes there."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="values"), attr="get"), args=[ast.Constant(str(name)), *_]
            ):
                yield name
            case ast.Call(func=ast.Attribute(attr="named"), args=[ast.Constant(str(name))]):
                yield name
            case ast.Subscript(value=ast.Attribute(attr="values"), slice=ast.Constant(str(name))):
                yield name
            case _:
                pass


ROOMS = ("settings", "mcp_host/config")
READERS = {"cli/mcp/import_servers.py", "mcp_host/config/run_servers.py", "mcp_host/config/workspace_config.py"}
"""Modules outside of the room of settings that read such a file for its servers: also ``--mcp-config``."""


def test_no_name_as_text_is_looked_up() -> None:
    files = [path for room in ROOMS for path in (SOURCES / room).rglob("*.py")]
    assert {str(path.relative_to(SOURCES)): names for path in files if (names := [*literal_look_ups(path)])} == {}


def test_other_modules_do_not_read_settings_files_by_themselves() -> None:
    def reads(path: Path) -> bool:
        names: Sequence[str] = [
            alias.name
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isthmus.settings")
            for alias in node.names
        ]
        return bool({"read_values", "settings_text"} & {*names})

    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if reads(path)}
    assert {name for name in found if not name.startswith("settings/")} == READERS
