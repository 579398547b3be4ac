"""Settings of agent CLIs that prevent a connection, and the defaults with which they start in IDE mode."""

import json
from pathlib import Path

import pytest

from isthmus.ide.discovery.protocols import AGENT_CLIS
from isthmus.ide.gemini.cli_settings import ide_mode_defaults

GEMINI, QWEN, CLAUDE = "Gemini CLI", "Qwen Code", "Claude Code"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a home without settings, on a machine without settings."""
    system = {
        f"{name}_SYSTEM_SETTINGS_PATH": str(tmp_path / name / "settings.json") for name in ("GEMINI_CLI", "QWEN_CODE")
    }
    return {"HOME": str(tmp_path / "home"), **system}


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def _said(cli: str, workspace: Path, environment: dict[str, str]) -> str:
    return " | ".join(_remarks(cli, workspace, environment))


def _remarks(cli: str, workspace: Path, environment: dict[str, str]) -> tuple[str, ...]:
    (known,) = (each for each in AGENT_CLIS if each.name == cli)
    return known.remarks(workspace, environment)


@pytest.mark.parametrize(("cli", "folder"), [(GEMINI, ".gemini"), (QWEN, ".qwen")])
@pytest.mark.parametrize("place", ["user", "project"])
def test_ide_mode_is_said_to_be_off_until_a_settings_file_turns_it_on(
    workspace: Path, environment: dict[str, str], cli: str, folder: str, place: str
) -> None:
    assert "enter /ide enable" in _said(cli, workspace, environment)
    assert "answer No" in _said(cli, workspace, environment)
    base = Path(environment["HOME"]) if place == "user" else workspace
    _write(base / folder / "settings.json", '{"ide": {"enabled": true}, /* a comment */}')
    assert "/ide enable" not in _said(cli, workspace, environment)


def test_a_later_file_wins_and_one_that_is_no_json_counts_as_empty(
    workspace: Path, environment: dict[str, str]
) -> None:
    _write(Path(environment["HOME"]) / ".gemini" / "settings.json", {"ide": {"enabled": True}})
    _write(workspace / ".gemini" / "settings.json", "{")
    assert _remarks(GEMINI, workspace, environment) == ()
    _write(workspace / ".gemini" / "settings.json", {"ide": {"enabled": False}})
    assert "/ide enable" in _said(GEMINI, workspace, environment)
    _write(Path(environment["GEMINI_CLI_SYSTEM_SETTINGS_PATH"]), {"ide": {"enabled": True}})
    assert _remarks(GEMINI, workspace, environment) == ()


@pytest.mark.parametrize(
    ("cli", "file", "key", "asks", "automatic", "option"),
    [
        (GEMINI, ".gemini/settings.json", "general.defaultApprovalMode", "default", "auto_edit", "--approval-mode"),
        (QWEN, ".qwen/settings.json", "tools.approvalMode", "default", "yolo", "--approval-mode"),
        (CLAUDE, ".claude/settings.json", "permissions.defaultMode", "default", "acceptEdits", "--permission-mode"),
    ],
)
def test_a_mode_without_diffs_is_said_with_the_way_out_of_it(
    workspace: Path, environment: dict[str, str], cli: str, file: str, key: str, asks: str, automatic: str, option: str
) -> None:
    group, name = key.split(".")
    # Without a setting Qwen Code and Claude Code start in their automatic mode.
    assert ("shows no diffs" in _said(cli, workspace, environment)) == (cli != GEMINI)
    _write(Path(environment["HOME"]) / file, {group: {name: asks}})
    assert "shows no diffs" not in _said(cli, workspace, environment)
    _write(Path(environment["HOME"]) / file, {group: {name: automatic}})
    said = _said(cli, workspace, environment)
    assert f"the mode {automatic}, in which it shows no diffs" in said
    assert "Shift+Tab" in said
    assert f"{option} default" in said


def test_hooks_that_are_switched_off_are_said(workspace: Path, environment: dict[str, str]) -> None:
    asks = {"permissions": {"defaultMode": "default"}}
    _write(Path(environment["HOME"]) / ".claude/settings.json", asks)
    assert _remarks(CLAUDE, workspace, environment) == ()
    _write(workspace / ".claude/settings.json", {"disableAllHooks": True})
    (said,) = _remarks(CLAUDE, workspace, environment)
    assert said == "disableAllHooks is set: its permission questions are asked in its own terminal alone"


def test_the_defaults_are_those_of_the_machine_with_ide_mode_on(tmp_path: Path, environment: dict[str, str]) -> None:
    theirs = tmp_path / "QWEN_CODE" / "system-defaults.json"
    _write(theirs, {"ui": {"theme": "Ayu"}, "ide": {"hasSeenNudge": False}})
    variables = ide_mode_defaults(environment, tmp_path / "own")
    own = Path(variables["QWEN_CODE_SYSTEM_DEFAULTS_PATH"])
    expected = {"ui": {"theme": "Ayu"}, "ide": {"hasSeenNudge": False, "enabled": True}}
    assert json.loads(own.read_text(encoding="utf-8")) == expected
    assert own.stat().st_mode & 0o777 == 0o600
    # An agent that is started below another one has the same.
    assert ide_mode_defaults(environment | variables, tmp_path / "own") == {}


@pytest.mark.parametrize("theirs", [{"ide": {"enabled": False}}, "{", {"ide": True}])
def test_a_machine_that_says_something_of_ide_mode_keeps_its_defaults(
    tmp_path: Path, environment: dict[str, str], theirs: object
) -> None:
    _write(tmp_path / "QWEN_CODE" / "system-defaults.json", theirs)
    assert ide_mode_defaults(environment, tmp_path / "own") == {}
