import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from isthmus.ide.claude.discovery.finding import find_ides
from isthmus.ide.ide_protocol import FoundIdes
from isthmus.ide.processes import process_is_alive
from support.isolation import IsolatedFolders


@pytest.fixture
def folder(isolated_folders: IsolatedFolders) -> Path:
    path = isolated_folders.home / ".claude" / "ide"
    path.mkdir(parents=True)
    return path


def announce(folder: Path, port: int | str, *folders: Path | str, **more: object) -> Path:
    path = folder / f"{port}.lock"
    content = {"pid": 77, "workspaceFolders": list(map(str, folders)), "ideName": "Neovim", "transport": "ws", **more}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def find(
    workspace: Path,
    *,
    above: tuple[int, ...] = (),
    is_alive: Callable[[int], bool] = lambda _: True,
    environment: Mapping[str, str] | None = None,
) -> FoundIdes:
    return find_ides(workspace, os.environ | dict(environment or {}), ancestors=lambda: above, is_alive=is_alive)


def ports(found: FoundIdes) -> list[int]:
    return [ide.port for ide in found.ides]


@pytest.mark.requirement("CLD-003", "CLD-005", "CLD-006", "CLD-011")
def test_a_lock_file_is_read_with_what_it_says(folder: Path, workspace: Path) -> None:
    path = announce(folder, 12345, workspace, authToken="secret", runningInWindows=False)
    (ide,) = find(workspace).ides
    assert (ide.port, ide.token, ide.ide_name, ide.pid, ide.source) == (12345, "secret", "Neovim", 77, str(path))
    assert "secret" not in repr(ide)


def test_a_token_may_be_missing_and_folders_may_end_in_a_slash(folder: Path, workspace: Path) -> None:
    announce(folder, 1, f"{workspace}/")
    announce(folder, 2, workspace, authToken="")
    assert [ide.token for ide in find(workspace).ides] == [None, None]


def test_both_folders_are_read_where_the_configuration_is_elsewhere(
    folder: Path, workspace: Path, tmp_path: Path
) -> None:
    other = tmp_path / "configuration" / "ide"
    other.mkdir(parents=True)
    announce(folder, 1, workspace)
    announce(other, 2, workspace)
    assert sorted(ports(find(workspace, environment={"CLAUDE_CONFIG_DIR": str(other.parent)}))) == [1, 2]
    assert ports(find(workspace)) == [1]


def test_a_folder_below_or_behind_a_link_matches_and_one_above_or_beside_does_not(
    folder: Path, workspace: Path, tmp_path: Path
) -> None:
    below = workspace / "below"
    below.mkdir()
    link = tmp_path / "link"
    link.symlink_to(workspace)
    announce(folder, 1, link)
    announce(folder, 2, f"{workspace}-beside")
    announce(folder, 3, below / "deeper")
    found = find(below)
    assert ports(found) == [1]
    assert all("do not contain" in rejected.reason for rejected in found.rejected)
    assert len(found.rejected) == 2


@pytest.mark.requirement("CLD-009")
def test_the_port_of_the_environment_wins_whatever_its_folders_are(
    folder: Path, workspace: Path, tmp_path: Path
) -> None:
    announce(folder, 1, workspace)
    announce(folder, 2, tmp_path / "another", authToken="t")
    found = find(workspace, above=(77,), environment={"CLAUDE_CODE_SSE_PORT": "2"})
    assert ports(found) == [2, 1]
    assert found.ides[0].token == "t"
    without_file = find(workspace, environment={"CLAUDE_CODE_SSE_PORT": "3"})
    assert [(ide.port, ide.token) for ide in without_file.ides] == [(3, None), (1, None)]
    assert ports(find(workspace, environment={"CLAUDE_CODE_SSE_PORT": "no port"})) == [1]


def test_the_ide_that_we_run_in_comes_before_living_closer_and_newer_ones(folder: Path, workspace: Path) -> None:
    below = workspace / "below"
    below.mkdir()
    old = announce(folder, 1, workspace, pid=10)
    announce(folder, 2, workspace, pid=11)
    announce(folder, 3, below, pid=12)
    announce(folder, 4, below, pid=13)
    announce(folder, 5, workspace, pid=14)
    os.utime(old, (1, 1))
    os.utime(folder / "2.lock", (2, 2))
    found = find(below, above=(99, 14), is_alive=lambda pid: pid != 13)
    assert ports(found) == [5, 3, 2, 1, 4]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected a JSON object"),
        ("[]", "expected a JSON object"),
        ('{"workspaceFolders": "/w"}', "workspaceFolders"),
        ('{"workspaceFolders": [".", 5]}', "workspaceFolders"),
        (r'{"workspaceFolders": ["/\ud800", "/\u0000"]}', "workspaceFolders"),
        ('{"workspaceFolders": ["/w"], "transport": "sse"}', "transport"),
        ('{"workspaceFolders": ["/"], "authToken": "two\\nlines"}', "authToken"),
        ('{"workspaceFolders": ["/"], "authToken": 5}', "authToken"),
    ],
)
def test_what_is_no_lock_file_is_told_and_left(folder: Path, workspace: Path, content: str, reason: str) -> None:
    path = folder / "4000.lock"
    path.write_text(content, encoding="utf-8")
    (folder / "notes.txt").write_text("not looked at", encoding="utf-8")
    (folder / "0.lock").write_text('{"workspaceFolders": ["/"]}', encoding="utf-8")
    found = find(workspace)
    assert found.ides == ()
    assert {Path(rejected.source).name for rejected in found.rejected} == {"4000.lock", "0.lock"}
    assert reason in next(rejected.reason for rejected in found.rejected if rejected.source == str(path))
    assert path.exists()


def test_what_is_no_file_of_ours_is_not_read(folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(folder, 1, workspace)
    os.mkfifo(folder / "2.lock")
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    reasons = [rejected.reason for rejected in find(workspace).rejected]
    assert len(reasons) == 2
    assert any("another user" in reason for reason in reasons)
    assert any("regular file" in reason for reason in reasons)


def test_a_process_id_beyond_all_that_systems_have_is_nobody(folder: Path, workspace: Path) -> None:
    announce(folder, 1, workspace, pid=2**70)
    announce(folder, 2, workspace, pid=os.getpid())
    assert ports(find(workspace, is_alive=process_is_alive)) == [2, 1]
