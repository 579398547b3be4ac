"""Placeholders of missing files, on which a sandbox mounts: they stay while a program needs them, and then go."""

import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.sandbox.placeholders import Placeholders, placeholders_of


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    return tmp_path / "own" / "placeholders" / "w.lock"


def missing(workspace: Path) -> list[tuple[Path, bool]]:
    return [(workspace / ".claude", True), (workspace / ".mcp.json", False)]


def test_they_are_made_and_removed_with_the_last_program(workspace: Path, lock_file: Path) -> None:
    found = Placeholders(lock_file)
    first, second = found.hold(), found.hold()
    assert found.make(missing(workspace)) == frozenset()
    assert (workspace / ".claude").is_dir()
    assert (workspace / ".mcp.json").is_socket()
    first()
    first()
    assert (workspace / ".claude").is_dir()
    second()
    assert list(workspace.iterdir()) == []
    again = found.hold()
    found.make(missing(workspace), with_sockets=False)
    assert (workspace / ".mcp.json").read_bytes() == b""
    again()
    assert list(workspace.iterdir()) == []


def test_what_the_user_made_of_them_stays(workspace: Path, lock_file: Path) -> None:
    found = Placeholders(lock_file)
    release = found.hold()
    found.make(missing(workspace))
    (workspace / ".claude" / "settings.json").touch()
    (workspace / ".mcp.json").unlink()
    (workspace / ".mcp.json").write_text("{}", encoding="utf-8")
    release()
    assert (workspace / ".claude" / "settings.json").is_file()
    assert (workspace / ".mcp.json").read_text("utf-8") == "{}"


def test_what_exists_is_left_alone_and_what_cannot_be_made_is_named(workspace: Path, lock_file: Path) -> None:
    (workspace / ".claude").mkdir()
    found = Placeholders(lock_file)
    release = found.hold()
    failed = found.make([(workspace / ".claude" / "deep" / "er", True), (workspace / "none" / "x", False)])
    assert failed == {workspace / ".claude" / "deep" / "er", workspace / "none" / "x"}
    release()
    assert (workspace / ".claude").is_dir()


BESIDE = """
import os, sys
from pathlib import Path
from isthmus.sandbox.placeholders import Placeholders

found = Placeholders(Path(sys.argv[1]))
release = found.hold()
found.make([(Path(sys.argv[2]) / ".claude", True), (Path(sys.argv[2]) / ".mcp.json", False)])
print("begun", flush=True)
if sys.stdin.readline() != "end\\n":
    os._exit(9)
release()
"""


def beside(lock_file: Path, workspace: Path) -> "subprocess.Popen[str]":
    """Start another process that holds the placeholders until it reads "end", or dies without releasing them."""
    command = [sys.executable, "-c", BESIDE, str(lock_file), str(workspace)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_another_process_that_has_programs_keeps_them_and_removes_them(workspace: Path, lock_file: Path) -> None:
    found = Placeholders(lock_file)
    release = found.hold()
    found.make(missing(workspace))
    with beside(lock_file, workspace) as process:
        release()
        assert (workspace / ".mcp.json").is_socket()
        process.communicate("end\n", timeout=60)
    assert list(workspace.iterdir()) == []


def test_those_of_a_killed_process_are_removed_after_the_next_program(workspace: Path, lock_file: Path) -> None:
    with beside(lock_file, workspace) as process:
        process.communicate("", timeout=60)
        assert process.returncode == 9
    assert (workspace / ".claude").is_dir()
    found = Placeholders(lock_file)
    release = found.hold()
    found.make([])
    release()
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("content", [b"\xff\n", b"{}\n", b'"relative"\n', b'"/no/such/path"\n', b"\0" * 100])
def test_a_list_with_anything_in_it_removes_nothing_else(workspace: Path, lock_file: Path, content: bytes) -> None:
    lock_file.parent.mkdir(parents=True)
    lock_file.write_bytes(content)
    (workspace / "kept").touch()
    found = Placeholders(lock_file)
    found.hold()()
    assert (workspace / "kept").exists()
    assert lock_file.read_bytes() == b""


def test_a_workspace_has_one_set_of_them_in_a_process(workspace: Path, tmp_path: Path) -> None:
    def of(own: Path | None) -> Placeholders:
        return placeholders_of(workspace, own)

    assert of(tmp_path) is of(tmp_path)
    assert of(tmp_path) is not of(None)
    release = of(None).hold()
    of(None).make(missing(workspace))
    release()
    assert list(workspace.iterdir()) == []
