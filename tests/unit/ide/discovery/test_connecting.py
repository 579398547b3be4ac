"""The announced IDE that an agent tries first."""

import json
import os
from pathlib import Path

import psutil
import pytest

from isthmus.ide.discovery.connecting import Candidates, find_candidates
from support.isolation import IsolatedFolders

ABOVE = psutil.Process().parents()[0].pid


class Announcements:
    """The discovery files of one editor for each protocol."""

    def __init__(self, isolated_folders: IsolatedFolders, workspace: Path) -> None:
        self._gemini = isolated_folders.temporary / "gemini" / "ide"
        self._claude = isolated_folders.home / ".claude" / "ide"
        self._workspace = str(workspace)
        for folder in (self._gemini, self._claude):
            folder.mkdir(parents=True)

    def gemini(self, port: int = 4001, pid: int = 1) -> None:
        content = {"port": port, "workspacePath": self._workspace, "authToken": "t"}
        (self._gemini / f"gemini-ide-server-{pid}-{port}.json").write_text(json.dumps(content), encoding="utf-8")

    def claude(self, port: int = 4002, pid: int = 1) -> None:
        content = {"pid": pid, "workspaceFolders": [self._workspace], "ideName": "Neovim", "transport": "ws"}
        (self._claude / f"{port}.lock").write_text(json.dumps(content), encoding="utf-8")


def first(candidates: Candidates) -> str:
    return next(protocol.name for protocol in candidates.by_protocol)


@pytest.fixture
def announcements(isolated_folders: IsolatedFolders, workspace: Path) -> Announcements:
    return Announcements(isolated_folders, workspace)


def test_there_may_be_none_or_one_of_either(announcements: Announcements, workspace: Path) -> None:
    assert not find_candidates(workspace, os.environ)
    announcements.gemini()
    found = find_candidates(workspace, os.environ)
    assert (bool(found), first(found)) == (True, "gemini")
    announcements.claude()
    assert first(find_candidates(workspace, os.environ)) == "claude"


def test_the_one_that_the_environment_names_is_tried_first(announcements: Announcements, workspace: Path) -> None:
    announcements.gemini(4001)
    announcements.claude(4002, pid=ABOVE)
    gemini = {"GEMINI_CLI_IDE_SERVER_PORT": "4001"}
    claude = {"CLAUDE_CODE_SSE_PORT": "4002"}
    assert first(find_candidates(workspace, os.environ | gemini)) == "gemini"
    assert first(find_candidates(workspace, os.environ | claude)) == "claude"
    assert first(find_candidates(workspace, os.environ | gemini | claude)) == "claude"


def test_the_one_that_we_run_in_is_tried_before_another_window(announcements: Announcements, workspace: Path) -> None:
    announcements.gemini(4001, pid=ABOVE)
    announcements.claude(4002, pid=1_000_000)
    assert first(find_candidates(workspace, os.environ)) == "gemini"
    announcements.claude(4003, pid=ABOVE)
    assert first(find_candidates(workspace, os.environ)) == "claude"
