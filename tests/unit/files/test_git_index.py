"""The tracked files of a repository, as the real git writes its index."""

import subprocess
from pathlib import Path

import pytest

from isthmus.files.git_index import tracked_files, tracked_names
from support.programs import require


def git(folder: Path, *words: str) -> str:
    done = subprocess.run([require("git"), *words], cwd=folder, check=True, timeout=60, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_names_are_those_that_git_lists(tmp_path: Path, version: str) -> None:
    git(tmp_path, "init", "-q")
    for name in ("a", "dir/b.py", "dir/c", "dir/sub/long-name-of-a-file-with-many-characters.txt", "z" * 200, "ü \n"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    git(tmp_path, "add", "-A")
    git(tmp_path, "update-index", "--index-version", version)
    if version == "3":
        (tmp_path / "later").write_text("x")
        git(tmp_path, "add", "-N", "later")
    listed = git(tmp_path, "ls-files", "-z").split("\0")[:-1]
    assert tracked_names((tmp_path / ".git" / "index").read_bytes()) == listed
    assert tracked_files(tmp_path / "dir") == {f"{tmp_path}/{name}" for name in listed}


def test_without_a_repository_or_an_index_there_are_none(tmp_path: Path) -> None:
    assert tracked_files(tmp_path) == frozenset()
    git(tmp_path, "init", "-q")
    assert tracked_files(tmp_path) == frozenset()


def test_a_worktree_has_an_index_of_its_own(tmp_path: Path) -> None:
    (main := tmp_path / "main").mkdir()
    git(main, "init", "-q")
    (main / "a").write_text("x")
    git(main, "add", "-A")
    git(main, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "a")
    git(main, "worktree", "add", "-q", str(tmp_path / "other"))
    assert tracked_files(tmp_path / "other") == {str(tmp_path / "other" / "a")}


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC\0\0\0\5\0\0\0\1", b"DIRC\0\0\0\2\0\0\0\1" + b"x" * 70])
def test_another_form_tells_nothing(tmp_path: Path, data: bytes) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "index").write_bytes(data)
    assert tracked_files(tmp_path) is None


def test_a_split_index_tells_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("x")
    git(tmp_path, "add", "-A")
    git(tmp_path, "update-index", "--split-index")
    assert tracked_files(tmp_path) is None
