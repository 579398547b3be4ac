"""The commands ``isthmus doctor`` and ``isthmus ide status`` beside real companions, stale files and taken ports."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from support.editor_tree import below_editor
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, companion_program, isthmus
from support.waiting import eventually


@pytest.fixture(autouse=True)
def _editor_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    # If the tests run in a container, Gemini CLI would look for its editor outside of it.
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")


@pytest.fixture
def dead_process() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


@pytest.fixture
def listening() -> Generator[int]:
    """Yield a port with a listener that must not get any bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
        listener.settimeout(0)
        while True:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return
            with connection:
                connection.settimeout(30)
                assert connection.recv(1) == b""


@pytest.fixture
def dead_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def doctor(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    done = isthmus("doctor", "--json", *options, folder=folder)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def connecting(found: dict[str, Any]) -> dict[str, int]:
    return {choice["cli"]: choice["port"] for choice in found["choices"] if choice["connects"]}


def claude_lock(isolated_folders: IsolatedFolders, port: int, pid: int, folder: Path) -> Path:
    path = isolated_folders.home / ".claude" / "ide" / f"{port}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"pid": pid, "workspaceFolders": [str(folder)], "ideName": "Vim", "transport": "ws", "authToken": "t"}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_without_an_editor_it_says_so_and_what_to_do(workspace: Path) -> None:
    done = isthmus("doctor", folder=workspace)
    assert done.returncode == 1
    assert "✗ Gemini CLI: no editor" in done.stdout
    assert "✗ Qwen Code: no editor" in done.stdout
    assert "✗ Claude Code: no editor" in done.stdout
    assert done.stdout.count("isthmus companion exec -- COMMAND") == 1


def test_a_companion_is_found_by_every_cli_and_from_elsewhere_named_with_its_folder(
    workspace: Path, tmp_path: Path
) -> None:
    with companion_program(workspace) as companion:
        status, found = doctor(workspace)
        assert status == 0
        assert set(connecting(found)) == {"Gemini CLI", "Qwen Code", "Claude Code", "Isthmus"}
        assert connecting(found)["Gemini CLI"] == connecting(found)["Qwen Code"] == companion.ready["port"]
        assert {file["state"] for file in found["files"]} == {"alive"}
        status, found = doctor(tmp_path)
        assert (status, connecting(found)) == (1, {})
        assert all(str(workspace) in choice["advice"] for choice in found["choices"])
        done = isthmus("doctor", folder=workspace)
        assert f"✓ Gemini CLI: Isthmus (headless) on port {companion.ready['port']}" in done.stdout


def test_no_token_is_shown_or_sent(workspace: Path, isolated_folders: IsolatedFolders, listening: int) -> None:
    claude_lock(isolated_folders, listening, os.getpid(), workspace)
    with companion_program(workspace) as companion:
        for options in ((), ("--json",)):
            done = isthmus("doctor", *options, folder=workspace)
            assert done.returncode == 0
            assert companion.discovered["authToken"] not in done.stdout


def test_stale_files_are_told_with_the_reason_and_removed_when_all_is_dead(
    workspace: Path, isolated_folders: IsolatedFolders, dead_process: int, dead_port: int, listening: int
) -> None:
    dead = claude_lock(isolated_folders, dead_port, dead_process, workspace)
    silent = claude_lock(isolated_folders, dead_port % 65535 + 1, os.getpid(), workspace)
    hidden = claude_lock(isolated_folders, listening, dead_process, workspace)
    broken = isolated_folders.temporary / "gemini" / "ide" / "gemini-ide-server-1-2.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{", encoding="utf-8")
    _, found = doctor(workspace)
    # Only Isthmus's agent does not check whether the process is visible.
    assert connecting(found) == {"Isthmus": listening}
    files = {Path(file["path"]): file for file in found["files"]}
    assert files[dead]["state"] == "stale"
    assert any(f"process {dead_process} is gone" in reason for reason in files[dead]["reasons"])
    assert files[silent]["reasons"][0].startswith("nobody listens")
    assert files[hidden]["state"] == "alive"
    assert "another container" in files[hidden]["reasons"][0]
    assert files[broken]["state"] == "unusable"
    assert all(path.exists() for path in files)
    _, swept = doctor(workspace, "--sweep")
    assert swept["removed"] == [str(dead)]
    assert [path for path in files if not path.exists()] == [dead]


def test_ide_status_tells_what_a_cli_would_find(workspace: Path, tmp_path: Path) -> None:
    with companion_program(workspace) as companion:
        done = isthmus("ide", "status", "--json", folder=workspace)
        assert connecting(json.loads(done.stdout)["discovery"])["Qwen Code"] == companion.ready["port"]
        elsewhere = isthmus("ide", "status", folder=tmp_path)
        assert elsewhere.returncode == 1
        assert f"start the CLI in {workspace}" in elsewhere.stderr


def test_of_two_companions_gemini_cli_would_take_its_terminals_editors(workspace: Path) -> None:
    with companion_program(workspace) as editors, companion_program(workspace):
        command = [*below_editor(editors.discovery_file), *ISTHMUS, "doctor", "--json"]
        done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False, timeout=60)
        (choice,) = (choice for choice in json.loads(done.stdout)["choices"] if choice["cli"] == "Gemini CLI")
        assert choice["port"] == editors.ready["port"]
        assert "this terminal runs in it" in choice["reason"]


def test_a_companion_that_was_suspended_has_no_tick(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        assert doctor(workspace)[0] == 0
        companion.process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: doctor(workspace)[0] == 1, what="no CLI would connect")
            choices = doctor(workspace)[1]["choices"]
            assert {choice["advice"] for choice in choices if not choice["connects"]} == {
                f"its process {companion.process.pid} is stopped (Ctrl-Z?); `fg` in its terminal or "
                f"`kill -CONT {companion.process.pid}` continues it"
            }
        finally:
            companion.process.send_signal(signal.SIGCONT)
