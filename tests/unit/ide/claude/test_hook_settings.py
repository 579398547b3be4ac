"""The command line of Claude Code with our hook: settings of the user's own go along, and no file is changed."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.ide import permission_hook
from isthmus.ide.claude.hook_settings import with_hooks

FOLDER = Path("/run/user/1000/isthmus")


def _settings(arguments: list[str]) -> dict[str, Any]:
    assert arguments.count("--settings") == 1
    return json.loads(arguments[arguments.index("--settings") + 1])


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
    assert shlex.split(command) == [*program, str(FOLDER), "4711", "claude"]


def test_its_prompts_and_their_ends_are_told_with_or_without_permissions() -> None:
    for permissions in (True, False):
        hooks = _settings(with_hooks(["claude"], FOLDER, 4711, permissions=permissions))["hooks"]
        assert ("PermissionRequest" in hooks) is permissions
        for event in ("UserPromptSubmit", "Stop"):
            ((hook,),) = (entry["hooks"] for entry in hooks[event])
            assert shlex.split(hook["command"])[-4:] == [str(FOLDER), "4711", "claude", "turn"]
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
        arguments = with_hooks(["claude", "-c", *option, "hello"], FOLDER, 4711)
        settings = _settings(arguments)
        assert arguments[3:] == ["-c", "hello"]
        assert (settings["model"], len(settings["hooks"]["Stop"])) == ("opus", 1)
        commands = _commands(settings)
        assert commands[0] == "bell"
        assert len(commands) == 2
    assert file.read_text(encoding="utf-8").startswith("// mine\n")


@pytest.mark.parametrize("own", ["/no/such/file.json", "{broken", "[]", None])
def test_settings_that_cannot_be_read_are_left_to_the_cli(own: str | None) -> None:
    given = ["claude", "--settings", *([own] if own is not None else [])]
    assert with_hooks(given, FOLDER, 4711) == given


def test_words_behind_two_hyphens_are_no_option() -> None:
    arguments = with_hooks(["claude", "--", "--settings"], FOLDER, 4711)
    assert arguments[3:] == ["--", "--settings"]
