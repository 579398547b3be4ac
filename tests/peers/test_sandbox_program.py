"""The program ``isthmus`` with and without a sandbox around its commands: options, settings, output."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest

from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, isthmus
from support.loaded_program import LoadedProgram
from support.sandboxing import with_bubblewrap

COMMAND = "echo x > made; echo x > /etc/isthmus-was-here; ls -A ~; echo done"
ALLOWED = ("--allowed-tools", "run_shell_command")
SAID = "shell commands run WITHOUT the requested sandbox: bubblewrap (bwrap) is not on PATH"


Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
"""Function that runs the program: as a process of its own from the start, or as a copy of one that has loaded it."""


def program(
    run: Run,
    workspace: Path,
    *arguments: str,
    command: str = COMMAND,
    is_installed: bool = True,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> "tuple[subprocess.CompletedProcess[str], str]":
    """Return a function that runs one prompt whose model runs a shell command and repeats its result."""
    call = {"name": "run_shell_command", "arguments": {"command": command}}
    ended = scripted(
        run,
        workspace,
        [{"call": call}, {"text": "{{result}}"}],
        *("-p", "go", *arguments),
        environment={**(with_bubblewrap() if is_installed else os.environ), **variables},
    )
    return ended, ended.stdout


def scripted(
    run: Run,
    workspace: Path,
    replies: list[dict[str, Any]],
    *arguments: str,
    environment: Mapping[str, str],
) -> "subprocess.CompletedProcess[str]":
    """Return a function that runs the program with these replies: it starts faster than with a provider's SDK."""
    script = workspace.parent / "script.yaml"
    script.write_text(json.dumps({"scenarios": [{"prompt": ".", "replies": replies}]}), encoding="utf-8")
    return run("-m", f"scripted:{script}", *arguments, folder=workspace, environment=environment)


def write_settings(folder: Path, tools: dict[str, Any]) -> None:
    (folder / ".gemini").mkdir(exist_ok=True)
    (folder / ".gemini" / "settings.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide bubblewrap from the test: PATH has only what a shell command needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "ls"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))


def test_commands_run_in_the_sandbox_when_that_is_asked_for(workspace: Path, isolated_folders: IsolatedFolders) -> None:
    (isolated_folders.home / "notes").write_text("private")
    ended, seen = program(isthmus, workspace, "--sandbox", *ALLOWED)
    assert ended.returncode == 0, ended.stderr
    assert "sandbox" not in ended.stderr
    assert "/etc/isthmus-was-here: Read-only file system" in seen
    assert "notes" not in seen
    assert "done" in seen
    assert (workspace / "made").exists()


def test_the_sandbox_allows_nothing_that_was_not_allowed(workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    ended, _ = program(loaded_isthmus.run, workspace, "--sandbox")
    assert "--allowed-tools" in ended.stdout + ended.stderr
    assert not (workspace / "made").exists()


@pytest.mark.parametrize(
    ("tools", "variables", "arguments", "is_confined"),
    [
        ({"sandbox": True}, {}, (), True),
        ({"sandbox": "docker"}, {}, (), True),
        ({"sandbox": {"require": True}}, {}, (), True),
        ({"sandbox": True}, {}, ("--sandbox=off",), False),
        ({"sandbox": True}, {"GEMINI_SANDBOX": "false"}, (), False),
        ({}, {"GEMINI_SANDBOX": "true"}, (), True),
        ({"sandbox": False}, {}, ("-s",), True),
        ({}, {}, (), False),
    ],
)  # fmt: skip
def test_option_variable_and_settings_decide_in_this_order(
    tools: dict[str, Any],
    variables: dict[str, str],
    arguments: tuple[str, ...],
    is_confined: bool,
    workspace: Path,
    isolated_folders: IsolatedFolders,
    loaded_isthmus: LoadedProgram,
) -> None:
    write_settings(isolated_folders.home, tools)
    command = "[ -e ~/.gemini ] && echo open || echo confined"
    ended, seen = program(loaded_isthmus.run, workspace, *ALLOWED, *arguments, command=command, variables=variables)
    assert ended.returncode == 0, ended.stderr
    assert ("confined" in seen, "open" in seen) == (is_confined, not is_confined)
    assert ("docker" in ended.stderr) == (tools.get("sandbox") == "docker")


def test_a_project_can_neither_open_nor_switch_off_the_sandbox(
    workspace: Path, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    write_settings(isolated_folders.home, {"sandbox": True})
    write_settings(workspace, {"sandbox": {"enabled": False, "paths": ["/etc"], "network": True}})
    _, seen = program(loaded_isthmus.run, workspace, *ALLOWED)
    assert "/etc/isthmus-was-here: Read-only file system" in seen


def test_settings_open_paths_for_commands(
    workspace: Path, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    (isolated_folders.home / "cache").mkdir()
    write_settings(isolated_folders.home, {"sandbox": {"paths": ["~/cache"], "environment": ["WANTED"]}})
    command = 'echo "$WANTED" > ~/cache/made; echo "[$OTHER]"'
    _, seen = program(loaded_isthmus.run, workspace, *ALLOWED, command=command, variables={"WANTED": "w", "OTHER": "o"})
    assert (isolated_folders.home / "cache" / "made").read_text() == "w\n"
    assert "[]" in seen


def test_commands_of_a_custom_command_are_confined_too(
    workspace: Path, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    folder = isolated_folders.home / ".gemini" / "commands"
    folder.mkdir(parents=True)
    (folder / "try.toml").write_text('prompt = "It said: !{touch /etc/isthmus-was-here; ls -A ~}"', encoding="utf-8")
    replies = [{"text": "{{prompt}}"}]
    ended = scripted(
        loaded_isthmus.run, workspace, replies, "--sandbox", *ALLOWED, "-p", "/try", environment=with_bubblewrap()
    )
    assert ended.returncode == 0, ended.stderr
    prompt = ended.stdout
    assert "It said: touch: cannot touch '/etc/isthmus-was-here': Read-only file system" in prompt
    assert ".gemini" not in prompt.split("Read-only file system")[1]


@pytest.mark.usefixtures("without")
def test_without_bubblewrap_it_goes_on_after_saying_so_once(workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    ended, seen = program(
        loaded_isthmus.run, workspace, "--sandbox", *ALLOWED, command="echo x > made; echo done", is_installed=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count(SAID) == 1
    assert "apt install bubblewrap" in ended.stderr
    assert "done" in seen


@pytest.mark.usefixtures("without")
@pytest.mark.parametrize("asked", ["option", "settings"])
def test_a_required_sandbox_that_does_not_work_refuses_to_start(
    asked: str, workspace: Path, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    if asked == "settings":
        write_settings(isolated_folders.home, {"sandbox": "require"})
    arguments = ("--sandbox=require",) if asked == "option" else ()
    ended, _ = program(loaded_isthmus.run, workspace, *arguments, *ALLOWED, is_installed=False)
    assert ended.returncode == 44
    assert "apt install bubblewrap" in ended.stderr
    assert "--sandbox=off" in ended.stderr
    assert not (workspace / "made").exists()
    ended, _ = program(loaded_isthmus.run, workspace, *arguments, "-o", "json", is_installed=False)
    error = json.loads(ended.stdout)["error"]
    assert (error["type"], error["code"]) == ("FatalSandboxError", 44)


@pytest.mark.usefixtures("without")
def test_a_server_refuses_to_start_without_the_sandbox_that_it_requires(workspace: Path) -> None:
    ended = subprocess.run(
        [*ISTHMUS, "serve", "--sandbox=require", "-m", "demo"],
        cwd=workspace, capture_output=True, encoding="utf-8", timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 44
    assert "bubblewrap (bwrap) is not on PATH" in ended.stderr
    assert "ready" not in ended.stdout


def test_about_tells_what_commands_are_confined_to(workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    def about(*arguments: str) -> str:
        command = ("-m", "demo", "-p", "/about", *arguments)
        return loaded_isthmus.run(*command, folder=workspace, environment=with_bubblewrap()).stdout

    assert "Sandbox: bubblewrap 0." in about("--sandbox")
    assert "writes in the workspace; no network" in about("--sandbox")
    assert "Sandbox: none; --sandbox confines shell commands" in about()


def test_a_broken_setting_names_its_key(
    workspace: Path, isolated_folders: IsolatedFolders, loaded_isthmus: LoadedProgram
) -> None:
    write_settings(isolated_folders.home, {"sandbox": {"paths": "~/a"}})
    ended, _ = program(loaded_isthmus.run, workspace)
    assert ended.returncode == 42
    assert "settings.json: tools.sandbox.paths: expected a list, received str '~/a'" in ended.stderr
