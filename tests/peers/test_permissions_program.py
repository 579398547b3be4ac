"""Claude Code's ``permissions`` in the whole program: a project forbids, even in yolo, and only the user allows."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.session_terminal import Sessions

SCRIPT = """
name: careless
scenarios:
  - prompt: '.'
    replies:
      - call: {name: run_shell_command, arguments: {command: touch made}}
      - call: {name: run_shell_command, arguments: {command: cat link}}
      - call: {name: run_shell_command, arguments: {command: echo a && git push -f}}
      - call: {name: read_file, arguments: {file_path: link}}
      - call: {name: grep_search, arguments: {pattern: hidden}}
      - call: {name: write_file, arguments: {file_path: secrets/new, content: x}}
      - text: Done.
"""
PROJECT = {"allow": ["Bash"], "deny": ["Read(./secrets/**)", "Bash(git push *)"], "defaultMode": "bypassPermissions"}


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    write_permissions(workspace, PROJECT)
    (workspace / "secrets").mkdir()
    (workspace / "secrets" / "key").write_text("a hidden value\n", "utf-8")
    (workspace / "link").symlink_to("secrets/key")
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def write_permissions(folder: Path, permissions: dict[str, Any]) -> None:
    (folder / ".claude").mkdir(exist_ok=True)
    (folder / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}), "utf-8")


def results(loaded: LoadedProgram, sessions: Sessions, *options: str) -> tuple[int, list[str], str]:
    """Run the calls; return the exit status, the result of each call, and the notices."""
    ran = loaded.run(*sessions.options, "-o", "stream-json", *options, "-p", "go", folder=sessions.workspace, text="")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    found = [line for line in lines if line["type"] == "tool_result"]
    return ran.returncode, [line.get("error", {}).get("message", line.get("output")) for line in found], ran.stderr


@pytest.mark.parametrize("mode", ["default", "yolo"])
def test_what_a_project_denies_is_refused_in_every_mode(
    sessions: Sessions, mode: str, loaded_isthmus: LoadedProgram
) -> None:
    _, found, notices = results(loaded_isthmus, sessions, "--approval-mode", mode)
    where = f"in permissions.deny in {sessions.workspace}/.claude/settings.json forbids it"
    secrets, push = f"'Read(./secrets/**)' {where}", f"'Bash(git push *)' {where}"
    assert found[1:3] == [secrets, push]
    assert found[3] == f"'link' is closed to the agent: {secrets}"
    assert "No matches found" in found[4]
    assert found[5] == f"'secrets/new' is closed to the agent: {secrets}"
    assert (sessions.workspace / "made").exists() == (mode == "yolo")
    assert "permissions.allow" in notices
    assert "permissions.defaultMode" in notices


def test_what_the_user_allows_runs_without_a_question(
    sessions: Sessions, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    write_permissions(isolated_folders.home, {"allow": ["Bash(touch:*)"]})
    status, found, _ = results(loaded_isthmus, sessions)
    assert (status, found[0]) == (0, "")
    assert (sessions.workspace / "made").exists()
    assert "forbids it" in found[1]
