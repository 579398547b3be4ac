"""Files found by words of their paths: their order, what is left out, and the limits."""

import os
from pathlib import Path

import pytest

from isthmus.ide.workspace import workspace_search
from isthmus.ide.workspace.workspace_search import find_files


def names(folder: Path, *words: str, limit: int = 100) -> list[str]:
    return [file.relative for file in find_files([str(folder)], words, limit).files]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.py", "a/deep/b.py", "a/b-list/c.py", ".git/b.py", "build/b.py", "node/x/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "node" / ".gitignore").write_text("*\n")
    return tmp_path


def test_names_come_before_folders_and_high_before_deep(tree: Path) -> None:
    assert names(tree, "B") == ["b.py", "a/deep/b.py", "a/b-list/c.py"]


def test_without_words_the_topmost_files_are_listed_up_to_the_limit(tree: Path) -> None:
    found = find_files([str(tree)], (), 2)
    assert ([file.relative for file in found.files], found.is_partial) == ([".gitignore", "b.py"], True)
    assert not find_files([str(tree)], (), 100).is_partial


def test_names_that_are_not_unicode_are_left_out(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"x\x80.py")).write_text("")
    (tmp_path / "x.py").write_text("")
    assert names(tmp_path, "x") == ["x.py"]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "again").symlink_to(tmp_path)
    (tmp_path / "self.py").symlink_to(tmp_path / "self.py")
    (tmp_path / "folder" / "a.py").write_text("")
    assert names(tmp_path) == ["folder/a.py"]


def test_a_search_ends_after_a_number_of_entries_and_at_its_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, *[2.0] * 100])
    assert find_files([str(tree)], ("nothing",), 10, clock=lambda: next(times)).is_partial
    monkeypatch.setattr(workspace_search, "MAXIMUM_ENTRIES", 3)
    assert find_files([str(tree)], ("nothing",), 10).is_partial


def test_a_folder_that_cannot_be_read_is_left_out(tree: Path) -> None:
    assert find_files([str(tree / "missing"), str(tree)], ("c.py",), 10).files[0].relative == "a/b-list/c.py"
