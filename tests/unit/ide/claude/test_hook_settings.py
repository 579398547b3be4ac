"""The command line of Claude Code with our hook: settings of the user's own go along, and no file is changed."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide import permission_hook
from isthmus.ide.claude.hook_settings import with_hooks

FOLDER = Path("/run/user/1000/isthmus")


def _settings(arguments: list[str]) -> dict[str, Any]:
    assert arguments.count("--settings") == 1
    value = arguments[arguments.index("--settings") + 1]
    return json.loads(value if value.startswith("{") else Path(value).read_text(encoding="utf-8"))


def _commands(settings: dict[str, Any]) -> list[str]:
    return [hook["command"] for entry in settings["hooks"]["PermissionRequest"] for hook in entry["hooks"]]


@pytest.mark.parametrize(
    ("given", "before", "after"),
    [
        (["claude"], ["claude"], []),
        (["/opt/bin/claude", "--ide", "hello"], ["/opt/bin/claude"], ["--ide", "hello"]),
        (["npx", "claude", "-c"], ["npx", "claude"], ["-c"]),
        (["npx", "-y", "@anthropic-ai/claude-code@2.1.332"], ["npx", "-y", "@anthropic-ai/claude-code@2.1.332"], []),
        (["env", "X=1", "claude"], ["env", "X=1", "claude"], []),
    ],
)
def test_claude_gets_the_hook_by_its_first_option(given: list[str], before: list[str], after: list[str]) -> None:
    arguments = with_hooks(given, FOLDER, 4711)
    at = arguments.index("--settings")
    assert (arguments[:at], arguments[at + 2 :]) == (before, after)
    (command,) = _commands(_settings(arguments))
    program = [sys.executable, "-I", "-S", str(Path(permission_hook.__file__).resolve())]
    assert shlex.split(command) == [*program, str(FOLDER), "4711", "claude", "||", "exit", "0"]


def test_a_hook_whose_program_is_gone_leaves_the_question_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python ends with 2 then, as a hook that refuses.
    monkeypatch.setattr(permission_hook, "__file__", "/no/such/permission_hook.py")
    (command,) = _commands(_settings(with_hooks(["claude"], FOLDER, 4711)))
    done = subprocess.run(["/bin/sh", "-c", command], input=b"{}", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


def test_its_prompts_and_their_ends_are_told_with_or_without_permissions() -> None:
    for permissions in (True, False):
        hooks = _settings(with_hooks(["claude"], FOLDER, 4711, permissions=permissions))["hooks"]
        assert ("PermissionRequest" in hooks) is permissions
        for event in ("UserPromptSubmit", "Stop"):
            ((hook,),) = (entry["hooks"] for entry in hooks[event])
            assert shlex.split(hook["command"])[-7:] == [str(FOLDER), "4711", "claude", "turn", "||", "exit", "0"]
            assert hook["timeout"] == 5


@pytest.mark.parametrize(
    "given",
    [
        ["gemini"],
        ["claude", "-p", "hello"],
        ["claude", "--print"],
        ["qwen", "--", "claude-like"],
        ["python"],
        ["gemini", "claude"],
        ["docker", "run", "image", "claude"],
        ["ssh", "host", "claude"],
        ["npx", "x"],
        [],
    ],
)
def test_other_agents_and_scripts_start_as_they_are(given: list[str]) -> None:
    assert with_hooks(given, FOLDER, 4711) == given


def test_the_users_own_settings_and_hooks_stay(tmp_path: Path) -> None:
    own = {
        "model": "opus",
        "hooks": {"PermissionRequest": [{"hooks": [{"type": "command", "command": "bell"}]}], "Stop": []},
    }
    file = tmp_path / "mine.json"
    file.write_text("// mine\n" + json.dumps(own), encoding="utf-8")
    for option in (["--settings", json.dumps(own)], [f"--settings={file}"], ["--settings", str(file)]):
        arguments = with_hooks(["claude", "-c", *option, "hello"], tmp_path, 4711)
        settings = _settings(arguments)
        assert arguments[3:] == ["-c", "hello"]
        assert (settings["model"], len(settings["hooks"]["Stop"])) == ("opus", 1)
        commands = _commands(settings)
        assert commands[0] == "bell"
        assert len(commands) == 2
    assert file.read_text(encoding="utf-8").startswith("// mine\n")


def test_settings_of_a_file_get_into_a_private_file_and_not_into_the_arguments(tmp_path: Path) -> None:
    file, folder = tmp_path / "mine.json", tmp_path / "run"
    file.write_text(json.dumps({"env": {"API_KEY": "the-secret"}}), encoding="utf-8")
    folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    of_ended = folder / f"claude-settings-{ended.pid}.json"
    of_ended.write_text("{}", encoding="utf-8")
    arguments = with_hooks(["claude", "--settings", str(file)], folder, 4711)
    assert "the-secret" not in " ".join(arguments)
    settings = _settings(arguments)
    assert settings["env"] == {"API_KEY": "the-secret"}
    assert len(_commands(settings)) == 1
    (stored,) = folder.iterdir()
    assert (str(stored), stored.stat().st_mode & 0o777) == (arguments[2], 0o600)
    unreachable = ["claude", "--settings", str(file)]
    assert with_hooks(unreachable, tmp_path / "none", 4711) == unreachable


@pytest.mark.parametrize("own", ["/no/such/file.json", "{broken", "[]", None])
def test_settings_that_cannot_be_read_are_left_to_the_cli(own: str | None) -> None:
    given = ["claude", "--settings", *([own] if own is not None else [])]
    assert with_hooks(given, FOLDER, 4711) == given


def test_words_behind_two_hyphens_are_no_option() -> None:
    arguments = with_hooks(["claude", "--", "--settings"], FOLDER, 4711)
    assert arguments[3:] == ["--", "--settings"]
