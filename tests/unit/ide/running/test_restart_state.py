"""State that one process of a companion leaves to the next."""

import os
import time
from pathlib import Path

import pytest

from isthmus.ide.running import restart_state
from isthmus.ide.running.restart_state import RestartStateFile

_KEPT = {"port": 2, "token": "secret"}


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every process look dead, also the writer of the file, which is this one."""

    def is_not_alive(pid: int) -> bool:
        return False

    monkeypatch.setattr(restart_state, "process_is_alive", is_not_alive)


def _file(folder: Path, *workspaces: str, editor: str = "headless") -> RestartStateFile:
    return RestartStateFile(folder, editor, workspaces or ("/one",))


def _left(folder: Path, *workspaces: str) -> Path:
    """Return the former process's state, with the discovery file that it left."""
    discovery = folder / "gemini-ide-server-1-2.json"
    discovery.write_text('{"authToken": "secret"}', encoding="utf-8")
    _file(folder / "states", *workspaces).write({"gemini": _KEPT}, [str(discovery)])
    return discovery


@pytest.mark.usefixtures("dead")
def test_the_state_of_the_former_process_is_taken_over_once_and_its_files_removed(tmp_path: Path) -> None:
    discovery = _left(tmp_path)
    state = _file(tmp_path / "states").take_over()
    assert state is not None
    assert (state.server("gemini"), state.server("claude")) == (_KEPT, None)
    assert not discovery.exists()
    assert [path.name.rpartition("-")[2] for path in (tmp_path / "states").iterdir()] == [f"{os.getpid()}.json"]


@pytest.mark.usefixtures("dead")
def test_a_pipe_in_place_of_a_discovery_file_blocks_nothing_and_stays(tmp_path: Path) -> None:
    discovery = _left(tmp_path)
    discovery.unlink()
    os.mkfifo(discovery)
    assert _file(tmp_path / "states").take_over() is not None
    assert discovery.exists()


@pytest.mark.usefixtures("dead")
def test_a_process_that_dies_before_it_writes_leaves_the_older_state_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _left(tmp_path)
    monkeypatch.setattr(os, "getpid", lambda: 1_000_001)
    assert _file(tmp_path / "states").take_over() is not None
    monkeypatch.setattr(os, "getpid", lambda: 1_000_002)
    state = _file(tmp_path / "states").take_over()
    assert state is not None
    assert state.server("gemini") == _KEPT


def test_two_processes_that_start_at_once_do_not_share_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starting = 1_000_001

    def is_starting(pid: int) -> bool:
        return pid == starting

    monkeypatch.setattr(restart_state, "process_is_alive", is_starting)
    _left(tmp_path)
    monkeypatch.setattr(os, "getpid", lambda: starting)
    assert _file(tmp_path / "states").take_over() is not None
    monkeypatch.setattr(os, "getpid", lambda: 1_000_002)
    assert _file(tmp_path / "states").take_over() is None
    assert len(list((tmp_path / "states").iterdir())) == 1


def test_the_state_of_a_running_companion_is_left_alone(tmp_path: Path) -> None:
    discovery = _left(tmp_path)
    assert _file(tmp_path / "states").take_over() is None
    assert discovery.exists()
    assert len(list((tmp_path / "states").iterdir())) == 1


@pytest.mark.usefixtures("dead")
def test_after_sixty_seconds_nothing_is_taken_over_and_the_files_are_removed(tmp_path: Path) -> None:
    discovery = _left(tmp_path)
    (path,) = (tmp_path / "states").iterdir()
    os.utime(path, (time.time() - 61, time.time() - 61))
    assert _file(tmp_path / "states").take_over() is None
    assert not discovery.exists()
    assert not path.exists()


@pytest.mark.usefixtures("dead")
def test_touching_the_file_restarts_the_sixty_seconds(tmp_path: Path) -> None:
    _left(tmp_path)
    (path,) = (tmp_path / "states").iterdir()
    os.utime(path, (time.time() - 61, time.time() - 61))
    _file(tmp_path / "states").touch()
    assert _file(tmp_path / "states").take_over() is not None


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize(
    ("workspaces", "editor", "fresh"), [(("/two",), "headless", False), ((), "neovim", False), ((), "headless", True)]
)
def test_another_workspace_another_editor_or_a_fresh_start_takes_over_nothing(
    tmp_path: Path, workspaces: tuple[str, ...], editor: str, fresh: bool
) -> None:
    discovery = _left(tmp_path)
    assert _file(tmp_path / "states", *workspaces, editor=editor).take_over(fresh=fresh) is None
    assert not discovery.exists()


@pytest.mark.usefixtures("dead")
def test_the_order_of_the_folders_does_not_matter(tmp_path: Path) -> None:
    _left(tmp_path, "/one", "/two")
    assert _file(tmp_path / "states", "/two", "/one").take_over() is not None


@pytest.mark.usefixtures("dead")
@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}', "\udcff".encode("utf-8", "surrogateescape")])
def test_a_broken_file_is_removed_without_an_error(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "states" / "0-1.json"
    path.parent.mkdir()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert _file(tmp_path / "states").take_over() is None
    assert not path.exists()


@pytest.mark.usefixtures("dead")
def test_a_named_file_with_another_token_is_not_removed(tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text('{"authToken": "another"}', encoding="utf-8")
    _file(tmp_path / "states").write({"gemini": _KEPT}, [str(precious)])
    _file(tmp_path / "states").take_over()
    assert precious.exists()
