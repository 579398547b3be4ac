"""Worktrees beside the user's files, of the user's own repository. With real git."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.local_worktree import LocalWorktree, begin_worktree
from isthmus.worktrees.worktree_end import end_worktree
from support.git_repositories import git, make_repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(
        tmp_path / "project", {"kept.txt": "kept\n", "sub/file": "x\n", ".gitignore": ".env\nout/\n"}
    )


async def begun(
    workspace: Path, name: str = "fix", held: ExitStack | None = None, *, goes_on: bool = False
) -> LocalWorktree:
    with ExitStack() as stack:
        return await begin_worktree(workspace, name, os.environ, held or stack, goes_on=goes_on)


async def test_the_session_works_in_the_same_subfolder(repository: Path) -> None:
    found = await begun(repository / "sub")
    assert found.workspace == repository / ".isthmus/worktrees/fix/sub"
    (repository / "later").mkdir()
    assert (await begun(repository / "later", "other")).workspace == repository / ".isthmus/worktrees/other"


async def test_a_worktree_begun_in_a_worktree_is_beside_it(repository: Path) -> None:
    first = await begun(repository)
    (first.folder / "new").write_text("", "utf-8")
    await end_worktree(first, "new")
    second = await begun(first.folder, "second")
    assert second.folder == repository / ".isthmus/worktrees/second"
    assert (second.folder / "new").exists()
    assert (await end_worktree(second, "")).is_removed


async def test_the_end_commits_everything_and_leaves_the_worktree_clean(repository: Path) -> None:
    found = await begun(repository)
    (found.folder / "kept.txt").write_text("staged\n", "utf-8")
    git(found.folder, "add", "kept.txt")
    (found.folder / "kept.txt").write_text("then changed\n", "utf-8")
    (found.folder / "sub/file").unlink()
    (found.folder / "new").write_text("", "utf-8")
    (found.folder / ".env").write_text("ignored", "utf-8")
    head, index = git(repository, "rev-parse", "HEAD"), (repository / ".git/index").read_bytes()
    end = await end_worktree(found, "  Change\tit  ")
    assert git(found.folder, "status", "--short") == ""
    assert git(found.folder, "show", "--name-status", "--format=%s%n%an", "HEAD").splitlines() == [
        *("Change it", "Isthmus", ""),
        *("M\tkept.txt", "A\tnew", "D\tsub/file"),
    ]
    assert "3 files changed" in end.lines[0]
    assert (git(repository, "rev-parse", "HEAD"), (repository / ".git/index").read_bytes()) == (head, index)
    assert git(repository, "status", "--short") == ""
    assert (await end_worktree(found, "again")).lines == end.lines
    git(repository, "merge", "-q", found.branch)
    assert (await end_worktree(found, "merged")).is_removed


async def test_an_operation_under_way_and_another_branch_are_left_alone(repository: Path) -> None:
    found = await begun(repository)
    git(found.folder, "checkout", "-q", "-b", "elsewhere")
    (found.folder / "new").write_text("", "utf-8")
    assert "another branch is checked out" in (await end_worktree(found, "")).lines[0]
    git(found.folder, "checkout", "-q", "--detach")
    assert "another branch is checked out" in (await end_worktree(found, "")).lines[0]
    git(found.folder, "checkout", "-q", found.branch)
    (repository / ".git/worktrees/fix/MERGE_HEAD").write_text(git(repository, "rev-parse", "HEAD"), "utf-8")
    assert "a merge or the like is under way" in (await end_worktree(found, "")).lines[0]
    assert git(found.folder, "log", "--format=%s") == "first"
    assert (found.folder / "new").exists()


async def test_what_is_not_committed_keeps_the_worktree_and_is_named(repository: Path) -> None:
    found = await begun(repository)
    make_repository(found.folder / "inner", {"a": ""})
    end = await end_worktree(found, "")
    assert not end.is_removed
    assert "not committed: inner/ (a repository of its own)" in end.lines
    assert "worktree remove --force" in end.lines[-1]


async def test_ignored_files_that_the_user_wants_are_copied(repository: Path, tmp_path: Path) -> None:
    (repository / ".env").write_text("SECRET=1", "utf-8")
    (repository / ".env").chmod(0o600)
    (repository / "out").mkdir()
    (repository / "out/a").write_text("a", "utf-8")
    (repository / "out/link").symlink_to(tmp_path)
    (repository / "not-ignored").write_text("", "utf-8")
    (repository / ".worktreeinclude").write_text(".env\nout/\nnot-ignored\n", "utf-8")
    found = await begun(repository)
    assert "copied into it, as .worktreeinclude says: 2 ignored files" in found.notices
    assert sorted(path.name for path in found.folder.iterdir()) == [
        *(".env", ".git", ".gitignore", "kept.txt", "out", "sub"),
    ]
    assert (found.folder / ".env").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (found.folder / "out").iterdir()] == ["a"]
    assert (await end_worktree(found, "")).is_removed


async def test_a_folder_that_was_deleted_by_hand_is_made_anew_with_its_work(repository: Path) -> None:
    found = await begun(repository)
    (found.folder / "new").write_text("", "utf-8")
    await end_worktree(found, "new")
    git(repository, "worktree", "list")
    for path in sorted(found.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    found.folder.rmdir()
    again = await begun(repository)
    assert (again.folder / "new").exists()
    assert not (await end_worktree(again, "")).is_removed


async def test_only_one_session_at_a_time_has_a_worktree(repository: Path) -> None:
    with ExitStack() as held:
        await begun(repository, held=held)
        with pytest.raises(WorktreeError, match="another session works in the worktree fix"):
            await begun(repository)
    assert not (await begun(repository)).is_new


async def test_names_that_are_taken_are_refused(repository: Path) -> None:
    git(repository, "branch", "isthmus/fix")
    with pytest.raises(WorktreeError, match=r"the branch isthmus/fix exists.*--worktree fix --continue"):
        await begun(repository)
    assert "made from the branch isthmus/fix" in (await begun(repository, goes_on=True)).notices[0]
    (repository / ".isthmus/worktrees/other").mkdir(parents=True)
    with pytest.raises(WorktreeError, match=r"is not a worktree of this repository. Choose another name"):
        await begun(repository, "other")


async def test_where_no_worktree_can_be_made_the_error_says_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    with pytest.raises(WorktreeError, match=r"is not in a git repository.*git init"):
        await begun(folder)
    git(folder, "init", "-q")
    with pytest.raises(WorktreeError, match=r"has no commit yet.*make a first one"):
        await begun(folder)
    git(folder, "init", "-q", "--bare", "bare.git")
    with pytest.raises(WorktreeError, match="bare"):
        await begun(folder / "bare.git")
    with ExitStack() as stack, pytest.raises(WorktreeError, match="install git"):
        await begin_worktree(folder, "fix", {"PATH": ""}, stack)


async def test_an_old_git_is_refused(tmp_path: Path) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\necho git version 2.30.2\n", "utf-8")
    (tmp_path / "git").chmod(0o755)
    with ExitStack() as stack, pytest.raises(WorktreeError, match=r"worktrees need 2\.36 or later: update git"):
        await begin_worktree(tmp_path, "fix", {"PATH": f"{tmp_path}:/bin"}, stack)


async def test_a_folder_of_worktrees_that_leads_elsewhere_is_refused(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (repository / ".isthmus").symlink_to(tmp_path / "outside")
    with pytest.raises(WorktreeError, match="is a link, not a folder"):
        await begun(repository)
    assert list((tmp_path / "outside").iterdir()) == []


async def test_submodules_are_named(repository: Path, tmp_path: Path) -> None:
    make_repository(tmp_path / "part", {"a": ""})
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "part"), "part")
    git(repository, "commit", "-qm", "part")
    found = await begun(repository)
    assert f"submodules are empty in it; to fetch them: git -C {found.folder} submodule update --init" in found.notices
    assert (await end_worktree(found, "")).is_removed


async def test_filters_of_the_user_run_and_those_of_the_repository_do_not(repository: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    (repository / ".gitattributes").write_text("*.a filter=mine\n*.b filter=theirs\n", "utf-8")
    (repository / "one.a").write_text("stored\n", "utf-8")
    (repository / "one.b").write_text("stored\n", "utf-8")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "filters")
    Path(os.environ["HOME"], ".gitconfig").write_text(
        '[filter "mine"]\n\tsmudge = sed s/stored/shown/\n\tclean = sed s/shown/stored/\n', "utf-8"
    )
    for key in ("smudge", "clean", "process"):
        git(repository, "config", f"filter.theirs.{key}", f"touch {trace}; cat")
    git(repository, "config", "core.fsmonitor", f"touch {trace}")
    hook = repository / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trace}\n", "utf-8")
    hook.chmod(0o755)
    found = await begun(repository)
    assert [(found.folder / name).read_text("utf-8") for name in ("one.a", "one.b")] == ["shown\n", "stored\n"]
    assert any("filters in the repository's own configuration" in line for line in found.notices)
    (found.folder / "two.a").write_text("shown\n", "utf-8")
    (found.folder / "two.b").write_text("shown\n", "utf-8")
    await end_worktree(found, "two")
    assert not trace.exists()
    shown = [
        git(repository, "-c", "core.fsmonitor=false", "show", f"{found.branch}:{name}") for name in ("two.a", "two.b")
    ]
    assert shown == ["stored", "shown"]


async def test_a_git_file_that_leads_elsewhere_is_not_followed_at_the_end(repository: Path, tmp_path: Path) -> None:
    found = await begun(repository)
    make_repository(tmp_path / "forged", {"a": ""})
    git(tmp_path / "forged", "config", "core.fsmonitor", f"touch {tmp_path}/trace")
    (found.folder / ".git").write_text(f"gitdir: {tmp_path}/forged/.git\n", "utf-8")
    (found.folder / "new").write_text("", "utf-8")
    end = await end_worktree(found, "new")
    assert "1 file changed" in end.lines[0]
    assert not (tmp_path / "trace").exists()
