"""Every settings key against the table of its allowed sources: a hostile project's file, in a trusted folder or not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.workspace_config import load_configuration
from isthmus.settings import Settings, SettingsError, load_settings
from isthmus.settings.env_files import load_environment
from isthmus.settings.keys import KEYS
from isthmus.settings.setting_key import Setter
from support.extension_folders import install_extension
from support.hostile_settings import HOSTILE, NEEDED, write_settings


def effective(project: Path, home: Path, *, is_trusted: bool) -> object:
    """Return the settings with an effect, without the messages about the files."""
    settings = load_settings(project, home, {}, is_trusted=is_trusted)
    usable = [
        (server.name, getattr(server, "inherits", None))
        for server in load_configuration(project, home, {}, lambda _: is_trusted).servers
        if not hasattr(server, "problem")
    ]
    return replace(settings, files=(), in_force=(), ignored=(), unused=(), guards=()), usable


def test_each_key_of_the_table_has_a_hostile_value() -> None:
    assert list(HOSTILE) == list(KEYS)


def test_an_untrusted_folder_can_only_forbid() -> None:
    assert {key for key in KEYS if KEYS[key].setter is Setter.ANYONE} == {
        "tools.exclude",
        "tools.core",
        "tools.confirmationRequired",
        "security.disableYoloMode",
        "security.disableAlwaysAllow",
        "admin.secureModeEnabled",
        "security.environmentVariableRedaction.blocked",
        "advanced.ignoreLocalEnv",
        "mcp.allowed",
        "mcp.excluded",
        "isthmus.mcp.allowed",
        "isthmus.mcp.denied",
        "admin.mcp.enabled",
        "skills.enabled",
        "skills.disabled",
        "experimental.enableAgents",
        "agents.overrides",
        "admin.skills.enabled",
        "hooksConfig.enabled",
        "hooksConfig.disabled",
    }
    assert {key for key in KEYS if KEYS[key].setter is Setter.USER} >= {
        "general.defaultApprovalMode",
        "tools.allowed",
        "tools.sandbox",
        "tools.sandboxAllowedPaths",
        "tools.sandboxNetworkAccess",
        "security.enablePermanentToolApproval",
        "isthmus.approval.readOnlyTools",
        "isthmus.approval.allowByEffect",
    }


@pytest.mark.parametrize("is_trusted", [False, True])
@pytest.mark.parametrize("key", KEYS)
def test_a_projects_file_sets_what_the_table_lets_it(tmp_path: Path, key: str, is_trusted: bool) -> None:
    home, project, empty = (tmp_path / name for name in ("home", "project", "empty"))
    mine = {"mcpServers": {"mine": {"command": "mine"}}}
    needed = NEEDED.get(key, {})
    write_settings(home, mine)
    install_extension(home, "from-git", {"mcpServers": {"of-extension": {"command": "x"}}}, source_type="git")
    write_settings(empty, needed)
    write_settings(project, {**needed, key: HOSTILE[key]})
    allowed = {Setter.USER: False, Setter.TRUSTED: is_trusted, Setter.ANYONE: True}[KEYS[key].setter]
    before = effective(empty, home, is_trusted=is_trusted)
    after = effective(project, home, is_trusted=is_trusted)
    assert (after != before) is (allowed and (is_trusted or not needed))
    write_settings(home, {**mine, **needed})
    before = effective(empty, home, is_trusted=is_trusted)
    write_settings(home, {**mine, **needed, key: HOSTILE[key]})
    if key != "mcpServers":
        assert effective(empty, home, is_trusted=is_trusted) != before, "the user may set every key"
    if not allowed and key != "mcpServers":
        *_, line = load_settings(project, home, {}, is_trusted=is_trusted).ignored
        assert line.startswith(f"{project}/.gemini/settings.json: not used, because ")
        assert key in line


def test_all_hostile_values_at_once_change_nothing_but_what_is_forbidden(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    write_settings(home, {"model.name": "gemini-mine", "tools.allowed": ["glob"]})
    write_settings(project, HOSTILE)
    settings = load_settings(project, home, {})
    assert settings.rules.yolo_refusal == f"security.disableYoloMode in {project}/.gemini/settings.json forbids it"
    assert settings.ignores_local_env
    assert not settings.rules.keeps_answers
    assert [entry.name for rules in settings.rules.tools.excluded for entry in rules.entries] == ["read_file"]
    assert (settings.uses_skills, settings.disabled_skills) == (False, ("mine",))
    assert (settings.uses_subagents, settings.disabled_subagents) == (False, ("mine",))
    narrowed = replace(settings, ignores_local_env=False, uses_skills=True, disabled_skills=(), files=(), ignored=())
    narrowed = replace(narrowed, uses_subagents=True, disabled_subagents=(), in_force=())
    assert narrowed == Settings(model="gemini-mine", allowed_tools=("glob",), rules=settings.rules)


LONG = "n" * 30_000


@pytest.mark.slow
@pytest.mark.parametrize("value", [LONG, [LONG], {LONG: 1}, {LONG: LONG}, {"a": {LONG: LONG}}, {LONG: {"args": LONG}}])
@pytest.mark.parametrize("key", KEYS)
def test_a_long_name_or_value_makes_no_long_message(tmp_path: Path, key: str, value: Any) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        write_settings(folder, {key: value})
    try:
        said = [*load_settings(project, home, {}, is_trusted=True).ignored]
    except SettingsError as error:
        said = [str(error)]
    said += load_configuration(project, home, {}, lambda _: True).problems
    assert [text for text in said if len(text) > 2000] == []


def trusts(*folders: Path) -> Callable[[Path], bool]:
    return lambda folder: folder in folders


ENV = 'GEMINI_API_KEY="theirs"\nGOOGLE_GEMINI_BASE_URL=http://theirs\nPATH=/theirs\nLD_PRELOAD=theirs.so\nDEBUG=1\n'


@pytest.mark.parametrize("name", [".env", ".gemini/.env"])
def test_a_projects_env_file_gives_keys_in_a_trusted_folder_and_nothing_else(tmp_path: Path, name: str) -> None:
    home, project = tmp_path / "home", tmp_path / "project" / "inner"
    (project.parent / ".gemini").mkdir(parents=True)
    project.mkdir()
    (project.parent / name).write_text(ENV, "utf-8")
    given = {"PATH": "/bin"}
    for trusted in ((), (project,)):  # The file is in the folder around it.
        assert load_environment(given, home, project, trusts(*trusted)).variables == given
    found = load_environment(given, home, project, trusts(project, project.parent)).variables
    assert found == {"PATH": "/bin", "GEMINI_API_KEY": "theirs"}
    assert load_environment({"GEMINI_API_KEY": "mine"}, home, project, lambda _: True).variables == {
        "GEMINI_API_KEY": "mine"
    }
    assert load_environment(given, home, None, lambda _: True).variables == given


def test_a_users_own_env_file_gives_what_the_environment_leaves_open(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GEMINI_API_KEY=plain\nDEBUG=1\nOTHER=2\n", "utf-8")
    assert load_environment({"OTHER": "1"}, tmp_path).variables == {"GEMINI_API_KEY": "plain", "OTHER": "1"}
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / ".env").write_text("export GEMINI_API_KEY='own' # mine\nDEBUG=1\n", "utf-8")
    assert load_environment({}, tmp_path).variables == {"GEMINI_API_KEY": "own", "DEBUG": "1"}


@pytest.mark.parametrize("is_outside", [False, True])
def test_a_systems_file_counts_before_all_others_unless_somebody_else_can_write_it(
    tmp_path: Path, is_outside: bool
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    path, defaults = tmp_path / "settings.json", tmp_path / "system-defaults.json"
    path.write_text('{"tools": {"exclude": ["write_file"]}, "model": {"name": "gemini-system"}}')
    defaults.write_text('{"model": {"name": "gemini-default", "maxSessionTurns": 3}}')
    write_settings(home, {"model.name": "gemini-mine", "tools.exclude": ["glob"]})
    path.chmod(0o666 if is_outside else 0o644)
    settings = load_settings(project, home, {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(path)})
    names = [entry.name for rules in settings.rules.tools.excluded for entry in rules.entries]
    if is_outside:
        assert (settings.model, names) == ("gemini-mine", ["glob"])
        assert settings.ignored == (f"{path} is not used: others can write to {path}",)
    else:
        assert (settings.model, names) == ("gemini-system", ["write_file", "glob"])
    assert settings.max_model_turns == 3
