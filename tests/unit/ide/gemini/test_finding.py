import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from isthmus.ide.gemini.finding import find_companions
from isthmus.ide.ide_protocol import FoundIdes
from isthmus.ide.processes import process_ancestors
from support.isolation import IsolatedFolders


def nobody() -> tuple[int, ...]:
    return ()


@pytest.fixture
def folder(isolated_folders: IsolatedFolders) -> Path:
    path = isolated_folders.temporary / "gemini" / "ide"
    path.mkdir(parents=True)
    return path


def announce(folder: Path, name: str, workspace: Path | str, **more: object) -> Path:
    path = folder / f"gemini-ide-server-{name}.json"
    port = int(name.rpartition("-")[2]) if "-" in name else 999
    content = {"port": port, "workspacePath": str(workspace), "authToken": "t", **more}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def find(
    workspace: Path,
    *,
    above: tuple[int, ...] = (),
    is_alive: Callable[[int], bool] = lambda _: True,
    environment: Mapping[str, str] | None = None,
) -> FoundIdes:
    return find_companions(workspace, os.environ | dict(environment or {}), ancestors=lambda: above, is_alive=is_alive)


def ports(found: FoundIdes) -> list[int]:
    return [companion.port for companion in found.ides]


def test_a_discovery_file_is_read_with_what_it_says(folder: Path, workspace: Path) -> None:
    path = announce(folder, "77-4001", workspace, ideInfo={"name": "neovim", "displayName": "Neovim"})
    (companion,) = find(workspace).ides
    assert (companion.port, companion.token, companion.pid, companion.source) == (4001, "t", 77, str(path))
    assert (companion.ide_name, companion.display_name, companion.folders) == ("neovim", "Neovim", (str(workspace),))


def test_the_old_file_name_and_a_port_as_text_are_understood(folder: Path, workspace: Path) -> None:
    announce(folder, "77", workspace, port="4002")
    (companion,) = find(workspace).ides
    assert (companion.port, companion.pid, companion.display_name) == (4002, 77, "ide")


def test_the_workspace_may_be_a_folder_below_one_of_several_roots_and_behind_a_link(
    folder: Path, workspace: Path, tmp_path: Path
) -> None:
    below = workspace / "src" / "deep"
    below.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(workspace)
    announce(folder, "1-4001", os.pathsep.join(["/somewhere/else", str(link)]))
    announce(folder, "1-4002", f"{workspace}-other")
    announce(folder, "1-4003", workspace / "src" / "de")
    found = find(below)
    assert ports(found) == [4001]
    assert len(found.rejected) == 2
    assert all(str(below) in rejected.reason for rejected in found.rejected)


def test_the_ide_that_we_run_in_comes_first_then_the_living_then_the_newer(folder: Path, workspace: Path) -> None:
    for name in ("10-4001", "20-4002", "30-4003", "40-4004", "50-4005"):
        announce(folder, name, workspace)
    found = find(workspace, above=(5, 20, 10), is_alive=lambda pid: pid != 50)
    assert ports(found) == [4002, 4001, 4004, 4003, 4005]


def test_the_named_process_goes_before_the_tree_and_the_named_port_before_all(folder: Path, workspace: Path) -> None:
    for name in ("10-4001", "20-4002", "30-4003"):
        announce(folder, name, workspace)
    assert ports(find(workspace, above=(10,), environment={"GEMINI_CLI_IDE_PID": "20"})) == [4002, 4001, 4003]
    named = find(workspace, above=(10,), environment={"GEMINI_CLI_IDE_PID": "20", "GEMINI_CLI_IDE_SERVER_PORT": "4003"})
    assert ports(named) == [4003, 4002, 4001]


def test_the_environment_alone_is_enough(workspace: Path) -> None:
    variables = {
        "GEMINI_CLI_IDE_SERVER_PORT": "4009",
        "GEMINI_CLI_IDE_WORKSPACE_PATH": str(workspace),
        "GEMINI_CLI_IDE_AUTH_TOKEN": "secret",
    }
    (companion,) = find(workspace, environment=variables).ides
    assert (companion.port, companion.token, companion.source) == (4009, "secret", "GEMINI_CLI_IDE_SERVER_PORT")
    assert ports(find(workspace.parent, environment=variables)) == []


def test_a_file_knows_more_than_the_environment_about_the_same_port(folder: Path, workspace: Path) -> None:
    announce(folder, "1-4009", workspace, authToken="of the file")
    variables = {"GEMINI_CLI_IDE_SERVER_PORT": "4009", "GEMINI_CLI_IDE_WORKSPACE_PATH": str(workspace)}
    (companion,) = find(workspace, environment=variables).ides
    assert companion.token == "of the file"


@pytest.mark.parametrize("variable", ["TMPDIR", "TMP", "TEMP"])
def test_the_folder_is_where_node_has_its_temporary_files(workspace: Path, tmp_path: Path, variable: str) -> None:
    folder = tmp_path / "node" / "gemini" / "ide"
    folder.mkdir(parents=True)
    announce(folder, "1-4001", workspace)
    environment: Mapping[str, str] = {variable: f"{tmp_path}/node/"}
    assert ports(find_companions(workspace, environment, ancestors=nobody)) == [4001]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[" * 50_000, "JSON"),
        (b"[1]", "object"),
        (b'{"workspacePath": "/"}', "port"),
        (b'{"port": 0, "workspacePath": "/"}', "port"),
        (b'{"port": true, "workspacePath": "/"}', "port"),
        (b'{"port": 70000, "workspacePath": "/"}', "port"),
        (b'{"port": 1, "workspacePath": ""}', "workspacePath"),
        (b'{"port": 1, "workspacePath": ["/"]}', "workspacePath"),
        (b'{"port": 1, "workspacePath": "/", "authToken": "two\\nlines"}', "authToken"),
        (b'{"port": 1, "workspacePath": "/", "authToken": 5}', "authToken"),
        (rb'{"port": 1, "workspacePath": "/\ud800:/\u0000"}', "do not contain"),
        (b" " * 70_000, "bytes"),
    ],
)
def test_a_file_that_is_of_no_use_is_named_with_the_reason(
    folder: Path, workspace: Path, content: bytes, reason: str
) -> None:
    bad = folder / "gemini-ide-server-1-2.json"
    bad.write_bytes(content)
    announce(folder, "1-4001", workspace)
    found = find(workspace)
    assert ports(found) == [4001]
    (rejected,) = found.rejected
    assert rejected.source == str(bad)
    assert reason in rejected.reason


def test_a_file_of_another_user_is_not_trusted(folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(folder, "1-4001", workspace)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    found = find(workspace)
    assert found.ides == ()
    assert "another user" in found.rejected[0].reason


def test_what_is_no_regular_file_is_not_waited_for(folder: Path, workspace: Path) -> None:
    os.mkfifo(folder / "gemini-ide-server-1-2.json")
    (folder / "gemini-ide-server-1-3.json").mkdir()
    (folder / "gemini-ide-server-1-4.json").symlink_to(folder / "missing")
    (folder / "something-else-1-4.json").write_text("{}")
    found = find(workspace)
    assert found.ides == ()
    assert len(found.rejected) == 3


def test_no_folder_means_no_companion(workspace: Path) -> None:
    assert find(workspace) == FoundIdes((), ())


def test_the_processes_above_this_one_are_known() -> None:
    assert process_ancestors()[0] == os.getppid()
