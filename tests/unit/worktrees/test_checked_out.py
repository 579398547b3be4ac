"""The branch of a folder, read from git's files: of repositories, of linked worktrees, and of what is neither."""

import os
from pathlib import Path

import pytest

from isthmus.worktrees.checked_out import branch_of


@pytest.mark.parametrize(
    ("head", "branch"),
    [("ref: refs/heads/feature/x\n", "feature/x"), ("0123456789abcdef\n", "0123456"), ("", ""), ("\xff", "\xff")],
)
def test_the_branch_is_read_from_the_repository_around(head: str, branch: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head, "utf-8")
    (tmp_path / "src").mkdir()
    assert branch_of(tmp_path / "src") == branch


def test_the_branch_of_a_linked_worktree_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "HEAD").write_text("ref: refs/heads/linked\n", "utf-8")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: ../git\n", "utf-8")
    assert branch_of(tmp_path / "tree") == "linked"


def test_a_pipe_in_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""
