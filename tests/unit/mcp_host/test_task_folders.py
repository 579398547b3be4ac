"""Tests of the folders of tasks at work."""

from pathlib import Path

from isthmus.mcp_host.task_folders import TaskFolders
from isthmus.tools.port.tool_set import ToolScope


def test_a_task_keeps_its_folder_while_it_works(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "link"
    one.mkdir()
    other.mkdir()
    link.symlink_to(one)
    folders, scope = TaskFolders(), ToolScope(link, "context", "task")
    assert folders.enter(scope) == one
    link.unlink()
    link.symlink_to(other)
    assert folders.of(scope) == one
    assert folders.of(ToolScope(link, "context", "another task")) == other
    assert folders.of(ToolScope(other, "context", "task")) == other
    assert folders.leave(scope) == one
    assert folders.of(scope) == other
