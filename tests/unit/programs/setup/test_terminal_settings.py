"""What the terminal front reads from the settings files, and keeps in them."""

import json
from pathlib import Path

import pytest

from isthmus.programs.setup.setup import GivenOptions, Setup, decide
from isthmus.programs.setup.terminal_settings import keep_theme, settings_lines, theme_of, theme_of_user
from isthmus.settings.edit_file import SettingsFileError
from isthmus.terminal.screen.themes import ColourTheme


@pytest.fixture
def file() -> Path:
    """Return the user's settings file, which has a comment and a key."""
    file = Path.home() / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('{\n  // mine\n  "general": {"vimMode": true}\n}\n', "utf-8")
    return file


def begun(workspace: Path) -> Setup:
    return decide(GivenOptions(workspace=workspace, model="demo", ide=False), may_ask=True)


def test_a_theme_is_kept_in_the_users_file_and_found_there(file: Path, tmp_path: Path) -> None:
    assert theme_of(begun(tmp_path).settings) is theme_of_user() is ColourTheme.AUTO
    assert keep_theme(ColourTheme.DARK) == f"Kept in {file}."
    assert theme_of(begun(tmp_path).settings) is theme_of_user() is ColourTheme.DARK
    assert "// mine" in file.read_text("utf-8")


def test_a_theme_of_the_machine_counts_before_the_kept_one(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "machine" / "settings.json"
    machine.parent.mkdir(mode=0o700)
    machine.write_text('{"isthmus": {"terminal": {"theme": "light"}}}', "utf-8")
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(machine))
    assert keep_theme(ColourTheme.DARK) == f"Kept in {file}; but {machine} counts before it at the next start."
    assert theme_of_user() is ColourTheme.LIGHT


def test_a_file_that_is_not_json_is_left_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("{", "utf-8")
    with pytest.raises(SettingsFileError, match="nothing was written"):
        keep_theme(ColourTheme.DARK)
    assert file.read_text("utf-8") == "{"
    assert theme_of_user() is ColourTheme.AUTO
    assert str(file) in capsys.readouterr().err


def test_settings_are_shown_as_they_were_at_the_start_and_the_theme_as_it_is(file: Path, tmp_path: Path) -> None:
    setup = begun(tmp_path)
    shown = "\n".join(settings_lines(setup))
    assert f"general.vimMode = true  {file}" in shown
    assert "have changed" not in shown
    keep_theme(ColourTheme.DARK)
    assert f"isthmus.terminal.theme = dark  {file}" in "\n".join(settings_lines(setup))
    assert "have changed" not in "\n".join(settings_lines(setup))
    file.write_text('{"general": {"vimMode": false}}', "utf-8")
    shown = "\n".join(settings_lines(setup))
    assert "general.vimMode = true" in shown
    assert "the changes count from the next start on" in shown
    file.write_text("{", "utf-8")
    assert "the next start would fail" in "\n".join(settings_lines(setup))


def test_a_secret_in_a_setting_is_hidden_and_what_is_not_used_is_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "a-token-of-mine")
    allowed = ["run_shell_command(curl https://me:my-password@x.test a-token-of-mine)"]
    file.write_text(json.dumps({"tools": {"allowed": allowed}, "ui": {"theme": "x"}}), "utf-8")
    shown = "\n".join(settings_lines(begun(tmp_path)))
    assert "tools.allowed = [run_shell_command(curl" in shown
    assert "my-password" not in shown
    assert "a-token-of-mine" not in shown
    assert "Settings that Isthmus does not use: ui.theme" in shown


def test_without_settings_files_that_is_said(tmp_path: Path) -> None:
    assert settings_lines(begun(tmp_path))[0] == "There is no settings file."
