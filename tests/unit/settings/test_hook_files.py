import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.settings import Settings, load_folder_rules, load_settings
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from unit.settings.test_guards import write_settings

COMMAND: dict[str, Any] = {"type": "command", "command": "check"}


def group(handler: dict[str, Any] = COMMAND, **more: Any) -> list[dict[str, Any]]:
    return [{"hooks": [handler], **more}]


def write_claude(folder: Path, values: object, name: str = "settings.json") -> Path:
    path = folder / ".claude" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), "utf-8")
    return path


def loaded(tmp_path: Path, *, is_trusted: bool = False) -> Settings:
    return load_settings(tmp_path / "project", tmp_path / "home", {}, is_trusted=is_trusted)


def commands(tmp_path: Path, *, is_trusted: bool = False) -> list[str]:
    return [hook.command for hook in loaded(tmp_path, is_trusted=is_trusted).rules.hooks]


def test_a_hook_of_gemini_cli_is_read_with_its_time_in_milliseconds(tmp_path: Path) -> None:
    handler = {"name": "security-check", **COMMAND, "timeout": 5000}
    path = write_settings(tmp_path / "home", {"hooks": {"BeforeTool": group(handler, matcher="write_file|replace")}})
    assert loaded(tmp_path).rules.hooks == (
        Hook(
            HookDialect.GEMINI,
            HookEvent.BEFORE_TOOL,
            "BeforeTool",
            "check",
            f"hooks.BeforeTool in {path}",
            "write_file|replace",
            seconds=5.0,
        ),
    )


def test_a_hook_of_claude_code_is_read_with_its_time_in_seconds_and_its_condition(tmp_path: Path) -> None:
    handler: dict[str, Any] = {**COMMAND, "timeout": 5, "if": "Bash(rm *)", "args": []}
    path = write_claude(tmp_path / "home", {"hooks": {"PreToolUse": group(handler, matcher="Bash")}})
    assert loaded(tmp_path).rules.hooks == (
        Hook(
            HookDialect.CLAUDE,
            HookEvent.BEFORE_TOOL,
            "PreToolUse",
            "check",
            f"hooks.PreToolUse in {path}",
            "Bash",
            "Bash(rm *)",
            (),
            5.0,
        ),
    )


def test_a_projects_hooks_run_only_where_its_folder_is_trusted(tmp_path: Path) -> None:
    hooks = {"hooks": {"BeforeTool": group({**COMMAND, "command": "gemini"})}}
    path = write_settings(tmp_path / "project", hooks)
    for name in ("settings.json", "settings.local.json"):
        write_claude(tmp_path / "project", {"hooks": {"PreToolUse": group({**COMMAND, "command": name})}}, name)
    assert commands(tmp_path) == []
    assert f"{path}: not used, because the folder is not trusted: hooks" in loaded(tmp_path).ignored[0]
    assert commands(tmp_path, is_trusted=True) == ["gemini", "settings.json", "settings.local.json"]


def test_hooks_know_whether_a_project_names_them(tmp_path: Path) -> None:
    for whose in ("home", "project"):
        write_settings(tmp_path / whose, {"hooks": {"BeforeModel": group()}})
        write_claude(tmp_path / whose, {"hooks": {"PreToolUse": group()}})
    hooks = loaded(tmp_path, is_trusted=True).rules.hooks
    assert [str(tmp_path / "project") in hook.where for hook in hooks] == [hook.is_project for hook in hooks]
    assert [hook.is_project for hook in hooks].count(True) == 2


def test_a_project_cannot_switch_off_the_users_hooks(tmp_path: Path) -> None:
    off = {"hooksConfig": {"enabled": False, "disabled": ["check"]}, "hooks": {"BeforeTool": group()}}
    write_settings(tmp_path / "project", off)
    write_claude(tmp_path / "project", {"disableAllHooks": True, "hooks": {"PreToolUse": group()}})
    write_settings(tmp_path / "home", {"hooks": {"BeforeTool": group({**COMMAND, "command": "mine"})}})
    write_claude(tmp_path / "home", {"hooks": {"PreToolUse": group({**COMMAND, "command": "mine too"})}})
    assert commands(tmp_path, is_trusted=True) == ["mine", "mine too"]


def test_the_user_can_switch_off_all_hooks_or_some(tmp_path: Path) -> None:
    two = [{"hooks": [{**COMMAND, "name": "a"}, {**COMMAND, "command": "b"}, {**COMMAND, "command": "c"}]}]
    write_settings(tmp_path / "home", {"hooks": {"BeforeTool": two}, "hooksConfig": {"disabled": ["a", "b"]}})
    assert commands(tmp_path) == ["c"]
    write_settings(tmp_path / "home", {"hooks": {"BeforeTool": two}, "hooksConfig": {"enabled": False}})
    assert commands(tmp_path) == []
    write_claude(tmp_path / "home", {"hooks": {"PreToolUse": group()}, "disableAllHooks": True})
    assert commands(tmp_path) == []


def test_an_event_of_gemini_cli_that_is_not_here_refuses_yolo(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "home", {"hooks": {"Unheard": group()}})
    assert loaded(tmp_path).guards == (f"hooks.Unheard in {path}",)
    assert loaded(tmp_path).rules.yolo_refusal is not None


@pytest.mark.parametrize("event", ["TeammateIdle", "TaskCompleted", "Unheard"])
def test_each_event_of_claude_code_that_might_refuse_and_is_not_here_refuses_yolo(tmp_path: Path, event: str) -> None:
    path = write_claude(tmp_path / "home", {"hooks": {event: group()}})
    assert loaded(tmp_path).guards == (f"hooks.{event} in {path}",)


@pytest.mark.parametrize("event", ["SessionEnd", "Notification"])
def test_each_event_that_refuses_nothing_and_is_not_here_is_named(tmp_path: Path, event: str) -> None:
    paths = [write_settings(tmp_path / "home", {"hooks": {event: group()}})]
    paths.append(write_claude(tmp_path / "home", {"hooks": {event: group()}}))
    settings = loaded(tmp_path)
    assert settings.guards == ()
    said = [f"hooks.{event} in {path} do not run: Isthmus has no such event" for path in paths]
    assert [line for line in settings.ignored if line in said] == said


@pytest.mark.parametrize(
    ("handler", "more", "problem"),
    [
        ({"type": "http", "url": "x"}, {}, "a hook of the type 'http' does not run"),
        ({"type": "prompt", "prompt": "x"}, {}, "a hook of the type 'prompt' does not run"),
        ({"type": "command"}, {}, "does not run"),
        ({**COMMAND, "shell": "powershell"}, {}, "another shell"),
        ({**COMMAND, "args": [1]}, {}, "args must be"),
        (COMMAND, {"matcher": "(?!Bash)"}, "cannot be searched in linear time"),
        (COMMAND, {"matcher": 3}, "must be text"),
    ],
)
def test_a_hook_that_cannot_run_refuses_yolo(
    tmp_path: Path, handler: dict[str, Any], more: dict[str, Any], problem: str
) -> None:
    write_claude(tmp_path / "home", {"hooks": {"PreToolUse": group(handler, **more)}})
    (guard,) = loaded(tmp_path).guards
    assert problem in guard
    assert commands(tmp_path) == []


def test_a_hook_in_the_background_is_named_and_refuses_nothing(tmp_path: Path) -> None:
    write_claude(tmp_path / "home", {"hooks": {"PostToolUse": group({**COMMAND, "async": True})}})
    assert (loaded(tmp_path).guards, commands(tmp_path)) == ((), [])
    assert "runs in the background" in loaded(tmp_path).ignored[0]


def test_settings_of_claude_code_that_cannot_be_read_refuse_yolo_and_nothing_else(tmp_path: Path) -> None:
    path = write_claude(tmp_path / "home", {})
    path.write_text("{", "utf-8")
    assert loaded(tmp_path).guards == (
        f"{path} cannot be read, so its hooks do not run and its permissions do not count",
    )


@pytest.mark.parametrize(
    "text", ["[1]", '{"BeforeTool": []}', '{"BeforeTool": [{"hooks": []}]}', '"x"', '{"Stop": []}']
)
def test_hooks_without_a_program_are_none(tmp_path: Path, text: str) -> None:
    hooks = json.loads(text)
    write_settings(tmp_path / "home", {"hooks": hooks})
    write_claude(tmp_path / "home", {"hooks": hooks})
    assert (loaded(tmp_path).guards, commands(tmp_path)) == ((), [])


def test_another_folder_of_claude_codes_settings_is_read(tmp_path: Path) -> None:
    write_claude(tmp_path, {"hooks": {"PreToolUse": group()}})
    variables = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    assert len(load_settings(tmp_path / "project", tmp_path / "home", variables).rules.hooks) == 1


def test_clients_of_a_server_do_not_learn_where_a_hook_is(tmp_path: Path) -> None:
    write_settings(tmp_path / "home", {"hooks": {"BeforeTool": group()}})
    write_claude(tmp_path / "home", {"hooks": {"PreToolUse": group()}})
    rules = load_folder_rules(tmp_path / "project", tmp_path / "home", {}, names_files=False).untrusted
    assert {hook.where.partition(" in ")[2] for hook in rules.hooks} == {"the settings of the server's owner"}
