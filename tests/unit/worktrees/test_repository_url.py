"""Repositories as operators name them."""

import pytest

from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.repository_url import RepositoryUrl, parse_repository


@pytest.mark.parametrize(
    ("text", "url", "ref"),
    [
        ("git+https://example.org/team/app.git", "https://example.org/team/app.git", None),
        ("git+https://user@example.org:8443/app#v1.2", "https://user@example.org:8443/app", "v1.2"),
        ("git+ssh://git@example.org/app#feature/a", "ssh://git@example.org/app", "feature/a"),
        ("git+git@example.org:team/app.git#main", "git@example.org:team/app.git", "main"),
        ("git+file:///srv/app.git", "file:///srv/app.git", None),
        ("git+/srv/app.git", "file:///srv/app.git", None),
    ],
)
def test_a_repository_is_a_url_and_a_ref(text: str, url: str, ref: str | None) -> None:
    assert parse_repository(text) == RepositoryUrl(url, ref)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/app",
        "git+",
        "git+-uevil:x",
        "git+--upload-pack=touch:x",
        "git+ext::sh -c id",
        "git+ext::sh%20-c%20id",
        "git+fd::17/foo",
        "git+ssh://-oProxyCommand=id/app",
        "git+ssh://-l@example.org/app",
        "git+-oProxyCommand=id:app",
        "git+git://example.org/app",
        "git+https:///app",
        "git+https://example.org",
        "git+file://other/app",
        "git+https://example.org/a\nb",
        "git+https://example.org/a b",
        "git+https://[::1/app",
        "git+https://example.org:port/app",
        "git+https://example.org/" + "a" * 3000,
    ],
)
def test_what_could_run_a_program_or_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(WorktreeError, match="is not a repository: expected git"):
        parse_repository(text)


@pytest.mark.parametrize("ref", ["", "-f", "a..b", "a^", "@{u}", "@", "a:b", "/a", "a/", "x.lock", "a.lock/b", "*"])
def test_a_ref_that_git_would_misread_is_refused(ref: str) -> None:
    with pytest.raises(WorktreeError, match="is not the name of a branch, tag or commit"):
        parse_repository(f"git+https://example.org/app#{ref}")


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(WorktreeError, match="credential helper") as caught:
        parse_repository("git+https://user:s3cret@example.org/app")
    assert "s3cret" not in str(caught.value)


def test_folders_of_repositories_are_readable_and_different() -> None:
    first = parse_repository("git+https://example.org/team/My%20App.git")
    assert first.folder_name.startswith("my-app-")
    assert first.folder_name == parse_repository("git+https://example.org/team/My%20App.git#main").folder_name
    assert first.folder_name != parse_repository("git+https://example.net/team/My%20App.git").folder_name
    assert parse_repository("git+file:///srv/...").folder_name.startswith("repository-")
