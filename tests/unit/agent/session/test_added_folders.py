"""Further folders of a session: the user's own, those of a client, and what each may reach on a server."""

from pathlib import Path

import pytest

from isthmus.agent.options import AgentOptions
from isthmus.agent.session.added_folders import AddedFolders
from isthmus.agent.session.session import Session
from isthmus.events import Prompt
from isthmus.internal_events import FolderIncluded
from isthmus.tools.port.failure import ToolFailure


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("served/work", "served/beside", "own", "outside"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def options(folders: Path, *roots: Path) -> AgentOptions:
    return AgentOptions(folders / "outputs", {}, included_folders=(folders / "own",), roots=roots)


def test_a_session_has_the_folders_of_its_user_and_those_that_its_messages_name() -> None:
    session = Session("s")
    about = {"workspace_path": "/w"}
    session.apply(Prompt("m1", "x", {**about, "additional_directories": ["/a", "/b"]}), "t1")
    session.apply(FolderIncluded("/c"))
    assert session.choices.added_folders == AddedFolders(("/c",), ("/a", "/b"))
    session.apply(Prompt("m2", "x", about), "t2")
    assert session.choices.added_folders.by_client == ("/a", "/b")
    session.apply(Prompt("m3", "x", {**about, "additional_directories": []}), "t3")
    assert session.choices.added_folders == AddedFolders(("/c",))


def test_the_local_users_agent_works_in_all_of_them(folders: Path) -> None:
    added = AddedFolders((str(folders / "outside"),), (str(folders / "served/beside"),))
    workspace = options(folders).workspace_of(folders / "served/work", "", added)
    assert set(workspace.others) == {folders / "own", folders / "outside", folders / "served/beside"}


def test_another_users_agent_works_in_folders_of_the_roots_that_the_client_names(folders: Path) -> None:
    added = AddedFolders((str(folders / "outside"),), (str(folders / "served/beside"), str(folders / "outside")))
    workspace = options(folders, folders / "served").workspace_of(folders / "served/work", "ann", added)
    assert workspace.others == (folders / "served/beside",)


def test_a_folder_that_a_link_has_led_out_of_the_roots_since_is_not_reached(folders: Path) -> None:
    beside = folders / "served/beside"
    (folders / "outside/a.txt").write_text("secret", encoding="utf-8")
    beside.rmdir()
    beside.symlink_to(folders / "outside")
    added = AddedFolders((), (str(beside),))
    workspace = options(folders, folders / "served").workspace_of(folders / "served/work", "", added)
    with pytest.raises(ToolFailure, match="is outside the workspace"):
        workspace.open_path(str(beside / "a.txt"))
