"""The companion that the user's commands choose, and the message about one that does not answer."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.ide.control.control_client import NoCompanionError, RefusedError, RunningCompanion, ask, choose


def _companion(port: int, *folders: Path) -> RunningCompanion:
    return RunningCompanion(
        1, port, {"NAME": "agents"}, "headless", 1, tuple(str(folder) for folder in folders), "", "", "user"
    )


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    outer, inner, beside = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "outer-beside"
    for folder in (outer, inner, beside):
        folder.mkdir()
    return outer, inner, beside


def test_the_nearest_workspace_above_the_folder_is_taken_and_of_equals_the_first(
    folders: tuple[Path, Path, Path],
) -> None:
    outer, inner, _ = folders
    newest, wide, near = _companion(1, outer), _companion(2, outer), _companion(3, inner, outer)
    assert choose([newest, wide, near], str(outer), {}) is newest
    assert choose([newest, wide, near], str(inner), {}) is near
    assert choose([newest, wide], str(inner), {}) is newest


def test_a_folder_beside_the_workspace_with_the_same_beginning_is_not_in_it(folders: tuple[Path, Path, Path]) -> None:
    outer, _, beside = folders
    with pytest.raises(NoCompanionError, match=str(beside)) as raised:
        choose([_companion(7, outer)], str(beside), {})
    assert "port 7" in str(raised.value)


def test_symlinks_lead_to_the_workspace(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folders[0])
    companion = _companion(1, folders[0])
    assert choose([companion], str(tmp_path / "link"), {}) is companion
    assert choose([_companion(2, tmp_path / "link")], str(folders[1]), {}).port == 2


def test_the_environments_port_precedes_the_workspace_and_a_named_one_both(
    folders: tuple[Path, Path, Path],
) -> None:
    outer, inner, beside = folders
    companions = [_companion(1, outer), _companion(2, inner), _companion(3, beside)]
    environment = {"GEMINI_CLI_IDE_SERVER_PORT": "2"}
    assert choose(companions, str(outer), environment).port == 2
    assert choose(companions, str(outer), environment, 3).port == 3
    assert choose(companions, str(outer), {"GEMINI_CLI_IDE_SERVER_PORT": "99"}).port == 1
    with pytest.raises(NoCompanionError, match="port 99"):
        choose(companions, str(outer), environment, 99)


def test_without_any_companion_the_message_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(NoCompanionError, match="isthmus companion"):
        choose([], str(tmp_path), {})


def test_of_a_companion_that_is_suspended_it_is_said_how_it_goes_on(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        suspended = replace(_companion(1, tmp_path), pid=process.pid, socket=str(tmp_path / "nobody"))
        with pytest.raises(RefusedError, match=f"kill -CONT {process.pid}"):
            ask(suspended, "status")
        process.kill()
    with pytest.raises(RefusedError, match="No such file"):
        ask(suspended, "status")


@pytest.mark.slow
def test_a_command_over_the_cap_is_refused_with_the_cap_before_anything_is_sent(
    folders: tuple[Path, Path, Path],
) -> None:
    with pytest.raises(RefusedError, match="accept: expected at most 64 MiB, received 65;"):
        ask(_companion(1, *folders), "accept", content="x" * 65 * 2**20)
