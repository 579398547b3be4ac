import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support import programs
from support.isolation import IsolatedFolders

PROBE = (
    "import os, pathlib, tempfile; print(pathlib.Path.home(), tempfile.gettempdir(), os.environ.get('NVIM'), sep='|')"
)


def test_home_and_temporary_files_are_the_tests_own_also_in_child_processes(isolated_folders: IsolatedFolders) -> None:
    child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, encoding="utf-8", check=True)
    assert child.stdout.strip() == f"{isolated_folders.home}|{isolated_folders.temporary}|None"
    assert Path.home() == isolated_folders.home
    assert tempfile.gettempdir() == str(isolated_folders.temporary)


def test_a_socket_path_below_any_isolated_folder_fits_into_its_limit(isolated_folders: IsolatedFolders) -> None:
    name = "gemini/ide/gemini-ide-server-4194304-65535.sock"
    assert len(str(isolated_folders.temporary / name).encode()) < 104
    assert len(str(isolated_folders.runtime / name).encode()) < 104


def test_no_key_of_a_provider_no_editor_and_no_integration_server_reaches_a_test() -> None:
    foreign = ("GEMINI_", "ANTHROPIC_", "OPENAI_", "GOOGLE_", "NVIM", "CI")
    assert [name for name in os.environ if name.startswith(foreign)] == []


def test_the_workspace_is_empty_and_in_no_git_repository(workspace: Path) -> None:
    assert list(workspace.iterdir()) == []
    assert not any((folder / ".git").exists() for folder in (workspace, *workspace.parents))


def test_a_missing_program_fails_in_continuous_integration_and_is_skipped_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "IN_CI", True)
    with pytest.raises(pytest.fail.Exception, match=r"'no-such-program' is neither in .* nor on PATH"):
        programs.require("no-such-program")
    with pytest.raises(pytest.fail.Exception, match="make peers"):
        programs.node_package("@isthmus/no-such-package")
    monkeypatch.setattr(programs, "IN_CI", False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program"):
        programs.require("no-such-program")


def test_a_program_of_the_virtual_environment_comes_before_one_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("pytest", "only-on-path"):
        (tmp_path / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert programs.require("pytest") != tmp_path / "pytest"
    assert shutil.which("pytest") == str(tmp_path / "pytest")
    assert programs.require("only-on-path") == tmp_path / "only-on-path"


@pytest.mark.slow
def test_continuous_integration_is_recognized_by_its_variable() -> None:
    for value, expected in (("true", "True"), ("", "False")):
        child = subprocess.run(
            [sys.executable, "-c", "from support import programs; print(programs.IN_CI)"],
            env={**os.environ, "CI": value, "PYTHONPATH": str(Path(programs.__file__).parent.parent)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert child.stdout.strip() == expected
