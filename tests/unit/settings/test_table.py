"""Each row of the table of settings: a field, a value of another form that is refused, and former names."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from isthmus.mcp_host.config.workspace_config import UnusableServer, load_configuration
from isthmus.settings import Settings, SettingsError, keys, load_settings
from isthmus.settings.field_keys import keys_of_fields
from isthmus.settings.keys import FORMER_NAMES, KEYS
from isthmus.settings.setting_key import Setter, SettingKey
from isthmus.settings.values import sandbox
from support.extension_folders import install_extension
from support.hostile_settings import HOSTILE, NEEDED, write_settings

FIELDS = [(name, key.name) for name, of in keys_of_fields(Settings) for key in of.keys]
WITHOUT_FIELD = {
    "admin.extensions.enabled",
    "security.blockGitExtensions",
    "security.allowedExtensions",
    "security.environmentVariableRedaction.allowed",
    "security.environmentVariableRedaction.blocked",
    "mcpServers",
    "mcp.allowed",
    "mcp.excluded",
    "isthmus.mcp.allowed",
    "isthmus.mcp.denied",
    "admin.mcp.enabled",
    "admin.mcp.config",
}
"""Keys that choose the extensions and MCP servers, which are not part of the settings."""
NOT_REFUSED = {"security.environmentVariableRedaction.allowed", "admin.mcp.enabled"}
"""Keys of which a value of another form has no effect, without a message."""


def said(project: Path, home: Path) -> Sequence[str]:
    """Return all that is said about the settings of the user, an error among it."""
    found: list[str] = []
    try:
        settings = load_settings(project, home, {})
        found += [*settings.ignored, *settings.guards]
    except SettingsError as error:
        found.append(str(error))
    configuration = load_configuration(project, home, {}, lambda _: True)
    problems = [server.problem for server in configuration.servers if isinstance(server, UnusableServer)]
    return [*found, *configuration.problems, *problems]


def test_no_key_has_two_rows() -> None:
    assert [row.name for row in vars(keys).values() if isinstance(row, SettingKey)] == list(KEYS)


def test_each_key_belongs_to_a_field_of_the_settings() -> None:
    assert {key for _, key in FIELDS} | WITHOUT_FIELD == KEYS.keys()


@pytest.mark.parametrize(("field", "key"), FIELDS)
def test_a_key_is_read_from_the_files_that_may_set_it_into_its_field(tmp_path: Path, field: str, key: str) -> None:
    home, project, empty = (tmp_path / name for name in ("home", "project", "empty"))
    needed = NEEDED.get(key, {})
    write_settings(home, {**needed, key: HOSTILE[key]})
    write_settings(project, {**needed, key: HOSTILE[key]})
    write_settings(empty, needed)
    default = getattr(load_settings(empty, empty, {}), field)
    of_user = getattr(load_settings(empty, home, {}), field)
    of_project = getattr(load_settings(project, tmp_path / "nobody", {}, is_trusted=True), field)
    assert needed or default == getattr(Settings(), field)
    if field == "project_model":
        assert (of_user, of_project) == (default, HOSTILE[key])
        return
    assert of_user != default
    is_of_project = KEYS[key].setter is not Setter.USER and field != "model"
    assert (of_project != default) is is_of_project


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_another_form_is_refused_with_its_key_and_file(tmp_path: Path, key: str) -> None:
    home = tmp_path / "home"
    install_extension(home, "one")
    wrong: object = 7 if KEYS[key].reader is sandbox else {"no": 7}
    write_settings(home, {key: wrong})
    path = f"{home}/.gemini/settings.json"
    lines = said(tmp_path / "project", home)
    assert any(key in line and path in line for line in lines) is (key not in NOT_REFUSED), lines


def test_the_keys_with_former_names_are_those_of_gemini_cli() -> None:
    assert FORMER_NAMES == {
        "tools.allowed": "allowedTools",
        "tools.exclude": "excludeTools",
        "tools.core": "coreTools",
    }


@pytest.mark.parametrize("key", FORMER_NAMES)
def test_a_key_is_read_under_its_former_name(tmp_path: Path, key: str) -> None:
    home, former = tmp_path / "home", tmp_path / "former"
    write_settings(home, {key: ["write_file"]})
    write_settings(former, {FORMER_NAMES[key]: ["write_file"]})
    field = next(field for field, name in FIELDS if name == key)
    found, of_former = (getattr(load_settings(tmp_path, folder, {}), field) for folder in (home, former))
    assert str(found).replace(str(home), str(former)) == str(of_former) != str(getattr(Settings(), field))
