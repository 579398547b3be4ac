"""Names of sessions, branches and worktrees."""

import pytest

from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.names import check_worktree_name, result_branch, session_name, slug

UUID = "0b5b4d4e-8f3c-4f6e-9a55-1f1f0d2c7c11"


def test_a_uuid_of_the_local_user_is_its_own_name() -> None:
    assert session_name("", UUID) == UUID


@pytest.mark.parametrize(
    "context_id",
    ["../../etc", "-rf", "", ".git", "a" * 500, "A-session-id", "x\ny", "é", "short", "\ud800", UUID + "\0"],
)
def test_any_id_gives_a_safe_name_of_its_own(context_id: str) -> None:
    name = session_name("", context_id)
    assert name.replace("-", "").isalnum()
    assert name.isascii()
    assert name == name.lower()
    assert len(name) < 50
    assert name != session_name("anna", context_id) != session_name("", context_id + "x")
    assert session_name("", name) != name


def test_sessions_of_two_users_never_share_a_name() -> None:
    assert len({session_name(user, UUID) for user in ("", "anna", "otto")}) == 3
    assert session_name("a", "bc-of-the-session") != session_name("ab", "c-of-the-session")


def test_a_branch_has_the_title_and_the_id() -> None:
    assert result_branch(UUID, "Fix the *login* — now!") == "isthmus/fix-the-login-now-0b5b4d4e"
    assert result_branch(UUID, "修复登录") == "isthmus/0b5b4d4e"
    assert result_branch(session_name("anna", UUID), "") != result_branch(session_name("otto", UUID), "")
    assert len(slug("many words " * 100)) <= 40


@pytest.mark.parametrize("name", ["fix-login", "a", "v1.2", "Fix_Login"])
def test_a_worktree_is_named_as_its_user_wants(name: str) -> None:
    assert check_worktree_name(name) == name


@pytest.mark.parametrize("name", ["", "-x", ".hidden", "a/b", "a..b", "a.lock", "a.", "Fix the bug", "a" * 65, "a\n"])
def test_a_name_that_cannot_be_a_branch_is_refused_with_advice(name: str) -> None:
    with pytest.raises(WorktreeError, match="expected up to 64 letters"):
        check_worktree_name(name)
