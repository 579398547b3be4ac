import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.settings import load_settings

GUARD: dict[str, Any] = {"security": {"toolSandboxing": True}}


def write_settings(folder: Path, values: dict[str, Any]) -> Path:
    (folder / ".gemini").mkdir(parents=True, exist_ok=True)
    path = folder / ".gemini" / "settings.json"
    path.write_text(json.dumps(values), "utf-8")
    return path


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"security": {"enableConseca": True}}, "security.enableConseca"),
        ({"security": {"toolSandboxing": True}}, "security.toolSandboxing"),
        ({"security": {"auth": {"enforcedType": "oauth-personal"}}}, "security.auth.enforcedType"),
        (
            {"context": {"fileFiltering": {"customIgnoreFilePaths": [".hidden"]}}},
            "context.fileFiltering.customIgnoreFilePaths",
        ),
    ],
)
def test_a_guard_that_is_not_applied_is_named_with_its_file_and_refuses_yolo(
    tmp_path: Path, values: dict[str, Any], name: str
) -> None:
    path = write_settings(tmp_path / "home", values)
    settings = load_settings(tmp_path, tmp_path / "home", {})
    assert settings.guards == (f"{name} in {path}",)
    assert settings.rules.yolo_refusal is not None
    assert f"{name} in {path}" in settings.rules.yolo_refusal


@pytest.mark.parametrize(
    "values",
    [
        {"policyPaths": []},
        {"security": {"enableConseca": False, "auth": "x"}},
        {"admin": {"mcp": {"enabled": True}}},
    ],
)
def test_a_guard_that_is_off_is_none(tmp_path: Path, values: dict[str, Any]) -> None:
    write_settings(tmp_path / "home", values)
    settings = load_settings(tmp_path, tmp_path / "home", {})
    assert (settings.guards, settings.rules.yolo_refusal) == ((), None)


def test_a_projects_guards_count_where_the_folder_is_trusted(tmp_path: Path) -> None:
    write_settings(tmp_path / "project", GUARD)
    assert load_settings(tmp_path / "project", tmp_path / "home", {}).guards == ()
    assert len(load_settings(tmp_path / "project", tmp_path / "home", {}, is_trusted=True).guards) == 1


@pytest.mark.parametrize("key", ["security.disableYoloMode", "admin.secureModeEnabled"])
def test_a_setting_that_forbids_yolo_does_so_from_a_projects_file(tmp_path: Path, key: str) -> None:
    group, name = key.split(".")
    path = write_settings(tmp_path / "project", {group: {name: True}})
    settings = load_settings(tmp_path / "project", tmp_path / "home", {})
    assert settings.rules.yolo_refusal == f"{key} in {path} forbids it"


def test_keys_that_are_not_used_are_named_once_and_those_that_are_not_at_all(tmp_path: Path) -> None:
    values = {
        "ui": {"theme": "x", "footer": {"hideCWD": True}},
        "model": {"name": "m"},
        "$schema": "s",
        "mcpServers": {},
    }
    write_settings(tmp_path / "home", values)
    write_settings(tmp_path / "project", {"ui": {"theme": "y"}, "vim": True})
    settings = load_settings(tmp_path / "project", tmp_path / "home", {})
    assert sorted(settings.unused) == ["ui.footer.hideCWD", "ui.theme", "vim"]
    write_settings(tmp_path / "project", {f"key{number}": 1 for number in range(100)})
    unused = load_settings(tmp_path / "project", tmp_path / "home", {}).unused
    assert len(unused) == 41
    assert unused[-1] == "and 62 more"
