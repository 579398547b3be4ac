"""The lock file of Qwen Code, without a server."""

import json
import os
import stat
from pathlib import Path

import pytest

from isthmus.ide.discovery_file import RejectedFile
from isthmus.ide.editor import EditorIdentity
from isthmus.ide.gemini.qwen_lock import QwenLockFile, legacy_number, lock_files, qwen_directory, read_lock
from isthmus.ide.ide_protocol import FoundIde

_IDENTITY = EditorIdentity("vim", "Vim", 4711)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HOME": "/home/me"}, "/home/me/.qwen"),
        ({"HOME": "/home/me", "QWEN_HOME": ""}, "/home/me/.qwen"),
        ({"HOME": "/home/me", "QWEN_HOME": "~"}, "/home/me"),
        ({"HOME": "/home/me", "QWEN_HOME": "~/other"}, "/home/me/other"),
        ({"HOME": "/home/me", "QWEN_HOME": "/srv/../qwen/"}, "/qwen"),
    ],
)
def test_the_folder_is_the_one_that_qwen_code_resolves(environment: dict[str, str], expected: str) -> None:
    assert qwen_directory(environment) == Path(expected)


def test_a_lock_is_written_whole_replaced_and_removed(tmp_path: Path) -> None:
    file = QwenLockFile(_IDENTITY, 5000, {"QWEN_HOME": str(tmp_path / "qwen")})
    file.write(("/one", "/two"), "secret")
    assert file.path == tmp_path / "qwen" / "ide" / "5000.lock"
    assert json.loads(file.path.read_text(encoding="utf-8")) == {
        "port": 5000,
        "workspacePath": "/one:/two",
        "ppid": os.getpid(),
        "authToken": "secret",
        "ideName": "Vim",
        "ideInfo": {"name": "vim", "displayName": "Vim"},
    }
    file.write(("/three",), "secret")
    assert json.loads(file.path.read_text(encoding="utf-8"))["workspacePath"] == "/three"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert list(file.path.parent.iterdir()) == [file.path]
    file.remove()
    file.remove()
    assert list(file.path.parent.iterdir()) == []


def test_a_folder_with_the_separator_in_its_name_is_written_as_a_list(tmp_path: Path) -> None:
    file = QwenLockFile(_IDENTITY, 5000, {"QWEN_HOME": str(tmp_path)})
    file.write(("/a:b", "/c"), "secret")
    assert json.loads(file.path.read_text(encoding="utf-8"))["workspacePath"] == '["/a:b", "/c"]'


def test_what_is_written_is_read_with_folders_and_process(tmp_path: Path) -> None:
    file = QwenLockFile(_IDENTITY, 5000, {"QWEN_HOME": str(tmp_path)})
    for folders in (("/one", "/two"), ("/a:b", "/c")):
        file.write(folders, "secret")
        read = read_lock(file.path)
        assert isinstance(read, FoundIde)
        assert (read.port, read.pid, read.folders, read.display_name) == (5000, os.getpid(), folders, "Vim")


def test_locks_and_the_files_of_older_companions_are_found(tmp_path: Path) -> None:
    lock = tmp_path / "home" / ".qwen" / "ide" / "5000.lock"
    lock.parent.mkdir(parents=True)
    old = tmp_path / "qwen-code-ide-server-4711.json"
    for path in (lock, old, lock.with_name("5000.txt"), lock.with_name("x.lock")):
        path.write_text("{}", encoding="utf-8")
    environment = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    assert [(path, legacy_number(path)) for path in lock_files(environment)] == [(lock, None), (old, 4711)]
    assert isinstance(read_lock(lock), RejectedFile)


def test_folders_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "1234.lock"
    for folders, expected in (
        (r'["/\ud800", 5, "", "/c"]', ("/c",)),
        ("[" * 50_000, ()),
        ("[" * 4_000, ("[" * 4_000,)),
    ):
        path.write_text(f'{{"port": 1234, "workspacePath": {json.dumps(folders)}}}', encoding="utf-8")
        read = read_lock(path)
        assert isinstance(read, FoundIde)
        assert read.folders == expected
