"""What is shown of the settings: the file that counts for each key, and no secret."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.settings import load_settings
from support.hostile_settings import HOSTILE, write_settings

SECRET = "hunter2-of-mine"


def shown(tmp_path: Path, values: dict[str, Any], *, project: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the values that are in force, by key, with the folder that states each."""
    write_settings(tmp_path / "home", values)
    write_settings(tmp_path / "project", project or {})
    found = load_settings(tmp_path / "project", tmp_path / "home", {}, is_trusted=True).in_force
    return {f"{item.key} {item.path.relative_to(tmp_path).parts[0]}": item.value for item in found}


def test_the_file_that_counts_is_named_and_of_keys_that_forbid_every_file(tmp_path: Path) -> None:
    mine = {"model.name": "mine", "general.vimMode": True, "tools.exclude": ["glob", "grep"]}
    theirs = {"model.name": "theirs", "general.vimMode": False, "tools.exclude": ["replace"]}
    assert shown(tmp_path, mine, project=theirs) == {
        "model.name project": "theirs",
        "general.vimMode home": "true",
        "tools.exclude project": "[replace]",
        "tools.exclude home": "[glob, grep]",
    }


def test_a_project_switches_its_own_hooks_off_beside_what_the_user_says(tmp_path: Path) -> None:
    mine, theirs = {"hooksConfig.enabled": True, "hooksConfig.disabled": [SECRET]}, {"hooksConfig.enabled": False}
    assert shown(tmp_path, mine, project=theirs) == {
        "hooksConfig.enabled project": "false",
        "hooksConfig.enabled home": "true",
        "hooksConfig.disabled home": "1 value",
    }


def test_servers_of_every_file_are_named_without_what_they_contain(tmp_path: Path) -> None:
    secrets = {"command": "run", "args": [SECRET], "env": {"TOKEN": SECRET}, "headers": {"Authorization": SECRET}}
    found = shown(tmp_path, {"mcpServers": {"mine": secrets}}, project={"mcpServers": {"theirs": secrets}})
    assert found == {"mcpServers project": "{theirs}", "mcpServers home": "{mine}"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("hooks", {"BeforeTool": [{"hooks": [{"type": "command", "command": f"curl {SECRET}"}]}]}, "{BeforeTool}"),
        ("isthmus.mcp.denied", [{"serverUrl": f"https://x.test/?key={SECRET}"}], "1 value"),
        ("admin.mcp.config", {"github": {"url": f"https://{SECRET}@x.test/"}}, "{github}"),
        ("security.allowedExtensions", [f"^https://{SECRET}@x.test/"], "1 value"),
    ],
)
def test_values_that_may_contain_secrets_are_not_shown(tmp_path: Path, key: str, value: object, text: str) -> None:
    found = shown(tmp_path, {key: value})
    assert found == {f"{key} home": text}
    assert SECRET not in str(load_settings(tmp_path / "project", tmp_path / "home", {}).in_force)


def test_the_sandbox_is_that_of_the_first_file_that_has_any_of_its_keys(tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir(mode=0o700)
    machine = tmp_path / "machine" / "settings.json"
    machine.write_text('{"tools": {"sandbox": false}}', "utf-8")
    write_settings(tmp_path / "home", {"tools.sandboxAllowedPaths": ["/a"], "tools.sandboxNetworkAccess": True})
    environment = {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(machine)}
    found = load_settings(tmp_path / "project", tmp_path / "home", environment).in_force
    assert [(item.key, item.value, item.path) for item in found] == [("tools.sandbox", "false", machine)]


def test_long_and_odd_values_are_cut_and_safe_to_show(tmp_path: Path) -> None:
    found = shown(tmp_path, {"tools.allowed": [f"t{number}" for number in range(999)], "model.name": "\x1b[31m" * 999})
    assert found["tools.allowed home"].endswith(" and 989 more]")
    assert "\x1b" not in found["model.name home"]
    assert all(len(value) < 300 for value in found.values())


def test_every_key_of_the_users_file_is_in_force(tmp_path: Path) -> None:
    assert [key.split()[0] for key in shown(tmp_path, HOSTILE)] == list(HOSTILE)
