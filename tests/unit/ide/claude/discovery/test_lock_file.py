"""The lock file that Claude CLIs look for."""

import json
import os
import stat
from pathlib import Path

import pytest

from isthmus.ide.claude.discovery.finding import find_ides
from isthmus.ide.claude.discovery.lock_file import LockFile, claude_variables
from isthmus.ide.editor import EditorIdentity

_NOBODY = 2**22 - 1
"""An id of no process: it is above every system's limit for process ids."""


def _lock_file(home: Path, pid: int | None = None, **environment: str) -> LockFile:
    identity = EditorIdentity("neovim", "Neovim", os.getpid() if pid is None else pid)
    return LockFile(identity, 12345, {"HOME": str(home), **environment})


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_holds_what_real_clients_read_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "ide").mkdir(parents=True, mode=0o755)
    lock = _lock_file(tmp_path)
    before = os.umask(0)
    try:
        lock.write(["/w", "/v"], "secret")
    finally:
        os.umask(before)
    assert lock.path == tmp_path / ".claude" / "ide" / "12345.lock"
    assert json.loads(lock.path.read_text(encoding="utf-8")) == {
        "pid": os.getpid(),
        "workspaceFolders": ["/w", "/v"],
        "ideName": "Neovim",
        "transport": "ws",
        "authToken": "secret",
        "runningInWindows": False,
    }
    assert (_mode(lock.path), _mode(lock.path.parent)) == (0o600, 0o700)
    assert [path.name for path in lock.path.parent.iterdir()] == ["12345.lock"]


def test_it_lies_where_the_configuration_folder_is_set(tmp_path: Path) -> None:
    lock = _lock_file(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))
    lock.write(["/w"], "secret")
    assert lock.path == tmp_path / "elsewhere" / "ide" / "12345.lock"
    assert _lock_file(tmp_path, CLAUDE_CONFIG_DIR="here").path == Path.cwd() / "here" / "ide" / "12345.lock"


@pytest.mark.parametrize("pid", [_NOBODY, 0, -1])
def test_an_editor_whose_process_is_not_seen_here_is_not_named(tmp_path: Path, pid: int) -> None:
    lock = _lock_file(tmp_path, pid)
    lock.write(["/w"], "secret")
    assert json.loads(lock.path.read_text(encoding="utf-8"))["pid"] == os.getpid()


def test_it_is_replaced_and_removed_and_may_be_gone_by_then(tmp_path: Path) -> None:
    lock = _lock_file(tmp_path)
    lock.write(["/w"], "secret")
    lock.write(["/other"], "secret")
    assert json.loads(lock.path.read_text(encoding="utf-8"))["workspaceFolders"] == ["/other"]
    lock.remove()
    lock.remove()
    assert not lock.path.exists()


def test_our_own_client_finds_it_by_folder_and_by_the_variables(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lock = _lock_file(home)
    lock.write([str(tmp_path)], "secret")
    (by_folder,) = find_ides(tmp_path, {"HOME": str(home)}).ides
    assert (by_folder.port, by_folder.token, by_folder.ide_name) == (12345, "secret", "Neovim")
    environment = {"HOME": str(home), **claude_variables(12345)}
    assert find_ides(Path("/"), environment).ides[0].token == "secret"
