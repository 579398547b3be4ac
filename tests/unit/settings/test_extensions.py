"""Extensions of Gemini CLI: which there are, where they are switched off, and what each of them brings."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.server_config import Origin, ServerConfig
from isthmus.mcp_host.config.workspace_config import load_configuration
from isthmus.settings import load_settings
from isthmus.settings.extensions import MAXIMUM_EXTENSIONS, find_extensions
from isthmus.settings.rules.hooks import HookDialect, HookEvent
from support.extension_folders import enable_extension, install_extension, link_extension


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def servers_of(work: Path, home: Path) -> dict[str, ServerConfig]:
    found = load_configuration(work, home, {}, lambda _: True).servers
    return {server.name: server for server in found if isinstance(server, ServerConfig)}


def test_there_are_none_without_a_folder_of_extensions(home: Path, work: Path) -> None:
    assert find_extensions(home, work, {}).installed == ()


def test_an_extension_is_named_with_its_version_and_its_files(home: Path, work: Path) -> None:
    folder = install_extension(home, "greeter", {"excludeTools": ["write_file"]})
    (folder / "GEMINI.md").write_text("Greet.", "utf-8")
    (found,) = find_extensions(home, work, {}).enabled
    assert (found.name, found.version, found.folder) == ("greeter", "1.0.0", folder)
    assert found.context_files == (folder / "GEMINI.md",)
    assert found.excluded_tools == ("write_file",)


def test_a_linked_extension_is_read_where_it_is(home: Path, work: Path, tmp_path: Path) -> None:
    source = install_extension(tmp_path / "source", "linked")
    link_extension(home, "linked", source)
    (found,) = find_extensions(home, work, {}).enabled
    assert found.folder == source


@pytest.mark.parametrize(
    ("rules", "is_enabled"),
    [
        (["{home}/*"], True),
        (["!{work}/*"], False),
        (["!{parent}/*"], False),
        (["!{parent}/"], True),
        (["!{work}"], False),
        (["!{work}-beside/*"], True),
        (["!/*", "{work}/*"], True),
        (["{work}/*", "!/*"], False),
    ],
)
def test_the_last_rule_about_a_folder_switches_an_extension_off(
    home: Path, work: Path, rules: list[str], is_enabled: bool
) -> None:
    install_extension(home, "greeter")
    enable_extension(home, "greeter", [rule.format(home=home, work=work, parent=work.parent) for rule in rules])
    assert [extension.is_enabled for extension in find_extensions(home, work, {}).installed] == [is_enabled]


def test_no_extension_is_used_when_the_file_that_switches_them_off_is_broken(home: Path, work: Path) -> None:
    install_extension(home, "greeter")
    (home / ".gemini" / "extensions" / "extension-enablement.json").write_text("{", "utf-8")
    found = find_extensions(home, work, {})
    assert found.installed == ()
    assert "no extension is used" in found.problems[0]


@pytest.mark.parametrize(
    "manifest",
    ["{", "[]", "7", "[" * 100_000, '{"version": "1"}', '{"name": "../up", "version": "1"}', '{"name": "x"}'],
)
def test_a_broken_extension_is_reported_and_the_others_work(home: Path, work: Path, manifest: str) -> None:
    install_extension(home, "good")
    (install_extension(home, "broken") / "gemini-extension.json").write_text(manifest, "utf-8")
    found = find_extensions(home, work, {})
    assert [extension.name for extension in found.enabled] == ["good"]
    assert found.problems[0].startswith("the extension broken is not used: ")
    assert found.problems[0] in load_settings(work, home, {}).ignored


def test_too_many_extensions_are_reported(home: Path, work: Path) -> None:
    for number in range(MAXIMUM_EXTENSIONS + 1):
        install_extension(home, f"e{number}")
    found = find_extensions(home, work, {})
    assert len(found.installed) == MAXIMUM_EXTENSIONS
    assert "only 100 extensions are used" in found.problems[0]


def test_instructions_outside_the_extension_are_not_read(home: Path, work: Path) -> None:
    folder = install_extension(home, "greeter", {"contextFileName": ["../../secret.md", "LINK.md", "OWN.md"]})
    (home / ".gemini" / "secret.md").write_text("secret", "utf-8")
    (folder / "LINK.md").symlink_to(home / ".gemini" / "secret.md")
    (folder / "OWN.md").write_text("own", "utf-8")
    (found,) = find_extensions(home, work, {}).enabled
    assert found.context_files == (folder / "OWN.md",)


def test_servers_get_the_paths_that_they_name_and_are_not_trusted(home: Path, work: Path) -> None:
    entry = {"command": "${extensionPath}${/}run", "args": ["${workspacePath}"], "trust": True, "headersHelper": "x"}
    folder = install_extension(home, "greeter", {"mcpServers": {"greetings": entry}})
    server = servers_of(work, home)["greetings"]
    endpoint: Any = server.endpoint
    assert (endpoint.command, tuple(endpoint.args)) == (f"{folder}/run", (str(work),))
    assert server.headers_helper is None
    assert (server.trust, server.origin, server.source) == (False, Origin.USER, folder / "gemini-extension.json")


def test_a_server_in_the_settings_replaces_one_of_an_extension(home: Path, work: Path) -> None:
    install_extension(home, "greeter", {"mcpServers": {"greetings": {"command": "theirs"}}})
    (home / ".gemini" / "settings.json").write_text('{"mcpServers": {"greetings": {"command": "mine"}}}', "utf-8")
    endpoint: Any = servers_of(work, home)["greetings"].endpoint
    assert endpoint.command == "mine"


def test_an_extension_that_is_switched_off_brings_nothing(home: Path, work: Path) -> None:
    brought = {"mcpServers": {"greetings": {"command": "x"}}, "excludeTools": ["write_file"]}
    install_extension(home, "greeter", brought)
    used = load_settings(work, home, {}).rules.tools.excluded
    enable_extension(home, "greeter", ["!/*"])
    assert (len(used), servers_of(work, home)) == (1, {})
    assert load_settings(work, home, {}).rules.tools.excluded == ()


@pytest.mark.parametrize(
    ("file", "text", "guard"),
    [
        ("hooks/hooks.json", "{", "hooks of the extension greeter, which cannot be read"),
        ("hooks/hooks.json", '{"hooks": []}', "hooks of the extension greeter, which cannot be read"),
        (
            "hooks/hooks.json",
            '{"hooks": {"Unheard": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
            "hooks.Unheard in the extension greeter",
        ),
    ],
)
def test_a_guard_of_an_extension_that_is_not_applied_is_named_and_refuses_yolo(
    home: Path, work: Path, file: str, text: str, guard: str
) -> None:
    path = install_extension(home, "greeter") / file
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    settings = load_settings(work, home, {})
    assert settings.guards == (guard,)
    assert guard in str(settings.rules.yolo_refusal)


def install_hook(home: Path, command: str) -> Path:
    folder = install_extension(home, "greeter")
    hooks = {"BeforeTool": [{"matcher": "write_file", "hooks": [{"type": "command", "command": command}]}]}
    (folder / "hooks").mkdir()
    (folder / "hooks" / "hooks.json").write_text(json.dumps({"hooks": hooks}), "utf-8")
    return folder


def test_hooks_of_an_extension_run_with_its_folder_and_the_workspace(home: Path, work: Path) -> None:
    folder = install_hook(home, '${extensionPath}${/}check "${workspacePath}"')
    settings = load_settings(work, home, {})
    (hook,) = settings.rules.hooks
    # The shell inserts the name of the workspace, which may be any text.
    assert (hook.command, hook.matcher) == (f'{folder}/check "${{GEMINI_PROJECT_DIR}}"', "write_file")
    assert (hook.dialect, hook.event) == (HookDialect.GEMINI, HookEvent.BEFORE_TOOL)
    assert settings.guards == ()


@pytest.mark.parametrize("config", [{"hooksConfig": {"enabled": False}}, {"hooksConfig": {"disabled": ["check"]}}])
def test_hooks_of_an_extension_are_switched_off_like_others(home: Path, work: Path, config: dict[str, Any]) -> None:
    install_hook(home, "check")
    (home / ".gemini" / "settings.json").write_text(json.dumps(config), "utf-8")
    assert load_settings(work, home, {}).rules.hooks == ()
    enable_extension(home, "greeter", ["!/*"])
    (home / ".gemini" / "settings.json").unlink()
    assert load_settings(work, home, {}).rules.hooks == ()


@pytest.mark.parametrize(
    ("settings", "used"),
    [
        ({"blockGitExtensions": True}, ["local"]),
        ({"allowedExtensions": ["theirs/git$"]}, ["git"]),
        ({"allowedExtensions": ["theirs/git$"], "blockGitExtensions": True}, ["git"]),
        ({"allowedExtensions": []}, ["git", "local"]),
        ({"allowedExtensions": ["("]}, []),
    ],
)
def test_settings_limit_where_extensions_come_from(
    home: Path, work: Path, settings: dict[str, object], used: list[str]
) -> None:
    install_extension(home, "git", source_type="git")
    install_extension(home, "local")
    (home / ".gemini" / "settings.json").write_text(json.dumps({"security": settings}), "utf-8")
    found = find_extensions(home, work, {})
    assert [extension.name for extension in found.enabled] == used
    assert bool(found.problems) is (len(used) < 2)


def test_the_machine_switches_all_extensions_off(home: Path, work: Path, tmp_path: Path) -> None:
    install_extension(home, "greeter")
    file = tmp_path / "machine" / "settings.json"
    file.parent.mkdir(mode=0o700)
    file.write_text('{"admin": {"extensions": {"enabled": false}}}', "utf-8")
    found = find_extensions(home, work, {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(file)})
    assert found.installed == ()
