"""Output of git, as it comes from a real one and from whoever writes messages and refs."""

import pytest

from isthmus.worktrees.git_environment import batch_ssh, names_in_repository
from isthmus.worktrees.git_output import (
    CheckpointNote,
    is_version_at_least,
    read_checkpoint_note,
    read_refused,
    read_remote_refs,
    read_worktrees,
)

ONE, TWO = "1" * 40, "2" * 40


def test_refs_of_a_remote_repository_are_read() -> None:
    listed = f"{ONE}\tHEAD\n{TWO}\trefs/isthmus/sessions/a\nwarning: odd\n"
    assert read_remote_refs(listed) == {"HEAD": ONE, "refs/isthmus/sessions/a": TWO}


def test_refused_refs_of_a_push_are_read_with_the_reason() -> None:
    (refused,) = read_refused(f"To somewhere\n!\t{ONE}:refs/isthmus/sessions/a\t[rejected] (stale info)\nDone\n")
    assert (refused.ref, refused.reason) == ("refs/isthmus/sessions/a", "[rejected] (stale info)")
    assert read_refused(f"To somewhere\n*\t{ONE}:refs/heads/a\t[new reference]\nDone\n") == ()


def test_worktrees_are_read_with_any_path() -> None:
    listed = f"worktree /a b\nc\0HEAD {ONE}\0branch refs/heads/main\0\0worktree /x\0bare\0\0worktree /y\0detached\0\0"
    assert [(one.path, one.branch, one.is_bare) for one in read_worktrees(listed)] == [
        ("/a b\nc", "refs/heads/main", False),
        ("/x", None, True),
        ("/y", None, False),
    ]


def test_the_note_of_a_checkpoint_is_read_back() -> None:
    note = CheckpointNote(ONE, TWO)
    assert read_checkpoint_note(note.message("Fix\nIsthmus-Base: x\n" * 50)) == note


@pytest.mark.parametrize(
    "message", ["", "fix", f"x\n\nIsthmus-Base: {ONE}", f"Isthmus-Base: --all\nIsthmus-Head: {ONE}"]
)
def test_any_other_message_is_not_a_checkpoint(message: str) -> None:
    assert read_checkpoint_note(message) is None


def test_versions_of_git_are_compared_by_number() -> None:
    assert is_version_at_least("git version 2.39.5 (Apple Git-154)", (2, 36))
    assert is_version_at_least("git version 10.0", (2, 36))
    assert not is_version_at_least("git version 2.9.1", (2, 36))
    assert not is_version_at_least("hub", (2, 36))


def test_ssh_asks_nothing_unless_it_is_another_program() -> None:
    assert batch_ssh("/usr/bin/ssh -i key").startswith("/usr/bin/ssh -i key -o BatchMode=yes -o ")
    assert batch_ssh("plink") == "plink"


def test_only_the_settings_of_the_repository_itself_are_a_strangers() -> None:
    listed = "global\0filter.lfs.clean\0local\0filter.own.smudge\0worktree\0core.bare\0"
    assert names_in_repository(listed) == ["filter.own.smudge", "core.bare"]
