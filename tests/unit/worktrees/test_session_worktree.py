"""Worktrees of sessions that two machines share by nothing but a repository. With real git."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from isthmus.worktrees import work_files
from isthmus.worktrees.errors import SessionMovedError, WorktreeError
from isthmus.worktrees.repository_url import parse_repository
from isthmus.worktrees.session_worktree import SessionWorktree
from support.git_repositories import SharedRepository, git

pytestmark = pytest.mark.anyio

SESSION = "0b5b4d4e-8f3c-4f6e-9a55-1f1f0d2c7c11"
FILES = {"kept.txt": "kept\n", "gone.txt": "gone\n", "src/run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SharedRepository.make_template(tmp_path_factory.mktemp("template"), FILES)


@pytest.fixture
def shared(tmp_path: Path, template: Path) -> SharedRepository:
    return SharedRepository(tmp_path, template)


async def opened(shared: SharedRepository, machine: str, session: str = SESSION) -> SessionWorktree:
    return (await shared.machine(machine).open(shared.url(), session)).worktree


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


def files_of(folder: Path) -> dict[str, object]:
    """Return content or target, and whether it can be executed, of everything below a folder but .git."""
    found: dict[str, object] = {}
    for parent, folders, names in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*names, *(one for one in folders if (Path(parent) / one).is_symlink())):
            path = Path(parent) / name
            if name == ".git":
                continue
            content = str(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = (content, bool(path.lstat().st_mode & stat.S_IXUSR))
    return found


def work(folder: Path) -> None:
    """Change a worktree in every way that git keeps."""
    (folder / "gone.txt").unlink()
    (folder / "kept.txt").write_bytes(b"latin \xe9\r\n")
    (folder / "src/run.sh").chmod(0o755)
    (folder / "new\nname \xe9").write_bytes(b"\0\xff" * 1000)
    (folder / "link").symlink_to("/nowhere/else")
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/file").write_text("", "utf-8")
    (folder / "build.log").write_text("ignored", "utf-8")


@pytest.mark.slow
async def test_a_session_goes_to_another_machine_and_back_with_its_files(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    work(first.folder)
    assert (await first.checkpoint("Change everything")).is_new
    second = await shared.machine("two").open(shared.url(), SESSION)
    assert second.was_taken_over
    expected = files_of(first.folder)
    del expected["build.log"]
    assert files_of(second.worktree.folder) == expected
    assert git(second.worktree.folder, "branch", "--show-current") == f"isthmus/{SESSION}"
    assert git(second.worktree.folder, "diff", "--name-status", "--diff-filter=D") == "D\tgone.txt"
    (second.worktree.folder / "link").unlink()
    (second.worktree.folder / "kept.txt").unlink()
    (second.worktree.folder / "kept.txt").mkdir()
    (second.worktree.folder / "kept.txt/inside").write_text("a folder now", "utf-8")
    await second.worktree.checkpoint()
    (first.folder / "build.log").unlink()
    (first.folder / "later").write_text("never kept", "utf-8")
    again = await shared.machine("one").open(shared.url(), SESSION)
    assert again.was_taken_over
    assert files_of(again.worktree.folder) == files_of(second.worktree.folder)


async def test_a_machine_that_lost_the_session_cannot_overwrite_it(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    (first.folder / "a").write_text("1", "utf-8")
    await first.checkpoint()
    second = await opened(shared, "two")  # before it has written anything
    (first.folder / "a").write_text("late", "utf-8")
    with pytest.raises(SessionMovedError, match="another one has gone on"):
        await first.checkpoint()
    with pytest.raises(SessionMovedError):
        await first.result("late")
    (second.folder / "a").write_text("2", "utf-8")
    await second.checkpoint()
    assert git(shared.bare, "show", f"refs/isthmus/sessions/{SESSION}:a") == "2"
    assert not shared.refs("refs/heads/isthmus")


async def test_without_changes_nothing_is_committed_or_pushed(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    assert not (await first.checkpoint()).is_new
    assert shared.refs() == {}
    (first.folder / "a").write_text("1", "utf-8")
    kept = await first.checkpoint()
    git(shared.bare, "config", "receive.denyCurrentBranch", "ignore")
    (shared.bare / "hooks" / "pre-receive").parent.mkdir(exist_ok=True)
    (shared.bare / "hooks" / "pre-receive").write_text("#!/bin/sh\nexit 1\n", "utf-8")
    (shared.bare / "hooks" / "pre-receive").chmod(0o755)
    again = await first.checkpoint()
    assert (again.commit, again.is_new) == (kept.commit, False)
    (first.folder / "a").write_text("2", "utf-8")
    assert not (await shared.machine("one").open(shared.url(), SESSION)).was_taken_over
    assert (first.folder / "a").read_text("utf-8") == "2"
    with pytest.raises(WorktreeError, match="pre-receive hook declined"):
        await first.checkpoint()


async def test_commits_of_the_agent_travel_and_are_on_the_branch(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    (first.folder / "a").write_text("1", "utf-8")
    git(first.folder, "add", "a")
    git(first.folder, "commit", "-qm", "by the agent")
    (first.folder / "b").write_text("2", "utf-8")
    git(first.folder, "add", "b")
    staged = git(first.folder, "diff", "--cached", "--name-only")
    await first.checkpoint()
    assert git(first.folder, "diff", "--cached", "--name-only") == staged == "b"
    second = await opened(shared, "two")
    assert git(second.folder, "log", "-1", "--format=%s") == "by the agent"
    assert git(second.folder, "status", "--short") == "?? b"
    result = await second.result("Add a and b")
    assert result is not None
    assert git(shared.bare, "log", "--format=%s (%an)", result.branch).splitlines() == [
        "Add a and b (Isthmus)",
        "by the agent (A User)",
        "first (A User)",
    ]


async def test_files_are_put_back_to_an_earlier_checkpoint(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    work(first.folder)
    kept = await first.checkpoint()
    expected = files_of(first.folder)
    (first.folder / "src/run.sh").chmod(0o644)
    (first.folder / "link").unlink()
    (first.folder / "link").mkdir()
    (first.folder / "link/x").write_text("", "utf-8")
    (first.folder / "gone.txt").write_text("back", "utf-8")
    later = await first.checkpoint()
    await first.restore(kept.commit)
    assert files_of(first.folder) == expected
    await first.restore(later.commit)
    assert (first.folder / "gone.txt").read_text("utf-8") == "back"
    with pytest.raises(WorktreeError, match="has no checkpoint"):
        await first.restore("f" * 40)


async def test_the_patch_makes_the_same_files_from_the_first_commit(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    work(first.folder)
    result = await first.result("Change everything")
    assert result is not None
    assert result.patch is not None
    (shared.folder / "a.patch").write_text(result.patch, "utf-8")
    git(shared.user, "update-index", "--refresh")
    git(shared.user, "apply", "--index", str(shared.folder / "a.patch"))
    (first.folder / "build.log").unlink()
    assert files_of(shared.user) == files_of(first.folder)
    assert git(shared.user, "write-tree") == git(shared.bare, "rev-parse", f"{result.branch}^{{tree}}")


async def test_a_text_patch_is_readable_and_its_size_is_limited(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    assert await first.result("Nothing") is None
    (first.folder / "kept.txt").write_text("kept\nmore\n", "utf-8")
    result = await first.result("More")
    assert result is not None
    assert "\n+more\n" in (result.patch or "")
    short = await first.result("More", maximum=100)
    assert short is not None
    assert (short.patch, short.commit) == (None, result.commit)
    assert "larger than 100 B" in short.notice


@pytest.mark.slow
async def test_a_result_grows_and_what_others_pushed_to_it_stays(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    (first.folder / "a").write_text("1", "utf-8")
    await first.result("Add a")
    second = await opened(shared, "two")
    (second.folder / "a").write_text("2", "utf-8")
    result = await second.result("Add a")
    assert result is not None
    assert git(shared.bare, "show", f"{result.branch}:a") == "2"
    git(shared.user, "fetch", "-q")
    git(shared.user, "checkout", "-q", result.branch)
    git(shared.user, "commit", "-q", "--allow-empty", "-m", "by a user")
    git(shared.user, "push", "-q", "origin", result.branch)
    (second.folder / "a").write_text("3", "utf-8")
    with pytest.raises(SessionMovedError, match="somebody changed it"):
        await second.result("Add a")
    assert git(shared.bare, "log", "-1", "--format=%s", result.branch) == "by a user"


async def test_a_session_has_one_branch_whatever_its_tasks_are_called(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    names: list[str] = []
    for title in ("Add a", "Improve it", "Explain it"):
        if title != "Explain it":
            (first.folder / "a").write_text(title, "utf-8")
        result = await first.result(title)
        assert result is not None
        names.append(result.branch)
    assert names == ["isthmus/add-a-0b5b4d4e"] * 3
    assert list(shared.refs("refs/heads/isthmus")) == [f"refs/heads/{names[0]}"]
    assert git(shared.bare, "show", f"{names[0]}:a") == "Improve it"
    second = await opened(shared, "two")
    (second.folder / "a").write_text("elsewhere", "utf-8")
    result = await second.result("Go on elsewhere")
    assert result is not None
    assert result.branch == names[0]
    git(shared.bare, "branch", "-D", names[0])
    (second.folder / "a").write_text("after the merge", "utf-8")
    result = await second.result("Do more")
    assert result is not None
    assert list(shared.refs("refs/heads/isthmus")) == ["refs/heads/isthmus/do-more-0b5b4d4e"]


async def test_a_result_without_changes_needs_no_remote_repository(shared: SharedRepository) -> None:
    first = await opened(shared, "one")
    (first.folder / "a").write_text("1", "utf-8")
    before = await first.result("Add a")
    shared.bare.rename(shared.bare.with_name("away.git"))
    again = await first.result("Add a")
    assert before is not None
    assert again is not None
    assert (again.branch, again.commit) == (before.branch, before.commit)


async def test_what_does_not_travel_is_named(shared: SharedRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_files, "MAXIMUM_FILE_BYTES", 1000)
    first = await opened(shared, "one")
    (first.folder / "inner").mkdir()
    git(first.folder / "inner", "init", "-q")
    (first.folder / "inner/a").write_text("1", "utf-8")
    (first.folder / "big").write_bytes(b"0" * 1001)
    (first.folder / "small").write_bytes(b"0" * 1000)
    kept = await first.checkpoint()
    assert kept.left_out == ("big (1001 B)", "inner/ (a repository of its own)")
    assert git(shared.bare, "ls-tree", "-r", "--name-only", kept.commit, "big", "small", "inner") == "small"


async def test_a_deleted_session_leaves_nothing_but_its_branch(shared: SharedRepository) -> None:
    first, other = await opened(shared, "one"), await opened(shared, "one", "another-session")
    for one in (first, other):
        (one.folder / "a").write_text("1", "utf-8")
        await one.checkpoint()
    result = await first.result("Add a")
    assert result is not None
    (first.folder / "locked").mkdir()
    (first.folder / "locked/file").write_text("", "utf-8")
    (first.folder / "locked").chmod(0o500)
    assert not await shared.machine("one").remove(shared.url(), SESSION, no)
    assert await shared.machine("one").has_unkept_changes(shared.url(), SESSION)
    assert await shared.machine("one").remove(shared.url(), SESSION, yes)
    assert list(shared.refs()) == ["refs/isthmus/sessions/another-session"]
    assert list(shared.refs("refs/heads/isthmus")) == [f"refs/heads/{result.branch}"]
    assert not first.folder.exists()
    assert other.folder.exists()
    left = git(first.mirror.path, "for-each-ref", "--format=%(refname)", "refs/isthmus", "refs/heads")
    assert SESSION not in left
    await shared.machine("one").remove(shared.url(), SESSION, yes)  # again is harmless


async def test_objects_of_removed_sessions_leave_the_mirror_after_some_days(shared: SharedRepository) -> None:
    machine = shared.machine("one")
    first, other = await opened(shared, "one"), await opened(shared, "one", "another-session")
    for one in (first, other):
        (one.folder / "a").write_text(one.session, "utf-8")
        await one.checkpoint()
    names = [git(first.mirror.path, "rev-parse", f"refs/isthmus/sessions/{one.session}:a") for one in (first, other)]
    assert await machine.remove(shared.url(), SESSION, yes)
    await machine.drop_objects(shared.url())
    objects = [first.mirror.path / "objects" / name[:2] / name[2:] for name in names]
    assert [path.exists() for path in objects] == [True, True]
    for path in (first.mirror.path / "objects").rglob("*"):
        os.utime(path, (0, 0))
    await machine.drop_objects(shared.url())
    assert [path.exists() for path in objects] == [False, True]
    (other.folder / "b").write_text("2", "utf-8")
    assert (await other.checkpoint()).is_new


@pytest.mark.slow
async def test_sessions_begin_at_the_ref_and_run_side_by_side(shared: SharedRepository) -> None:
    git(shared.user, "checkout", "-qb", "feature/a")
    (shared.user / "feature").write_text("", "utf-8")
    git(shared.user, "add", "-A")
    git(shared.user, "commit", "-qm", "feature")
    git(shared.user, "tag", "v1")
    commit = git(shared.user, "rev-parse", "HEAD")
    machine = shared.machine("one")
    await machine.open(shared.url(), "before-that-was-pushed")
    git(shared.user, "push", "-q", "--tags", "origin", "feature/a")
    names = {ref: f"session-{number}" for number, ref in enumerate(("feature/a", "v1", commit, None))}
    found = await asyncio.gather(*(machine.open(shared.url(ref), name) for ref, name in names.items()))
    assert [(one.worktree.folder / "feature").exists() for one in found] == [True, True, True, False]
    for one in found:
        (one.worktree.folder / "own").write_text(one.worktree.session, "utf-8")
    await asyncio.gather(*(one.worktree.checkpoint() for one in found))
    kept = [git(shared.bare, "show", f"refs/isthmus/sessions/{one.worktree.session}:own") for one in found]
    assert kept == [one.worktree.session for one in found]
    with pytest.raises(WorktreeError, match="has no branch, tag or commit nothing"):
        await machine.open(shared.url("nothing"), "session-x")


@pytest.mark.parametrize("damage", ["objects", "HEAD"])
async def test_a_broken_mirror_is_made_anew(shared: SharedRepository, damage: str) -> None:
    first = await opened(shared, "one")
    (first.folder / "a").write_text("1", "utf-8")
    await first.checkpoint()
    for path in sorted((first.mirror.path / damage).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if damage == "HEAD":
        (first.mirror.path / "HEAD").unlink()
    again = await opened(shared, "one")
    assert (again.folder / "a").read_text("utf-8") == "1"
    (again.folder / "a").write_text("2", "utf-8")
    assert (await again.checkpoint()).is_new


@pytest.mark.parametrize("how", ["folder", "pipe"])
async def test_a_worktree_whose_git_file_was_changed_is_mended(
    shared: SharedRepository, tmp_path: Path, how: str
) -> None:
    first = await opened(shared, "one")
    (first.folder / "a").write_text("1", "utf-8")
    await first.checkpoint()
    mark = first.folder / ".git"
    mark.unlink()
    match how:
        case "folder":
            mark.mkdir()
        case "pipe":
            os.mkfifo(mark)
        case _:
            pass
    (first.folder / "b").write_text("2", "utf-8")
    await first.checkpoint()  # does not look at it
    assert git(shared.bare, "show", f"refs/isthmus/sessions/{SESSION}:b") == "2"
    again = await opened(shared, "one")
    assert git(again.folder, "branch", "--show-current") == f"isthmus/{SESSION}"


async def test_a_repository_is_reached_by_ssh_that_asks_nothing(shared: SharedRepository, tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/trace\nfor last; do :; done\nexec sh -c "$last"\n', "utf-8")
    ssh.chmod(0o755)
    url = parse_repository(f"git+someone@example.org:{shared.bare}")
    machine = shared.machine("one", GIT_SSH_COMMAND=str(ssh))
    worktree = (await machine.open(url, SESSION)).worktree
    (worktree.folder / "a").write_text("1", "utf-8")
    await worktree.checkpoint()
    assert SESSION in str(shared.refs())
    calls = (tmp_path / "trace").read_text("utf-8").splitlines()
    assert all("BatchMode=yes" in call and " someone@example.org git-" in call for call in calls)
    await machine.remove(url, SESSION, yes)
    assert shared.refs() == {}


async def test_errors_say_what_to_do(shared: SharedRepository, tmp_path: Path) -> None:
    shared.bare.rename(tmp_path / "away")
    with pytest.raises(WorktreeError, match=r"cannot be read: .*Check the URL, and that git can log in"):
        await opened(shared, "one")
    git(tmp_path, "init", "-q", "--bare", str(shared.bare))
    with pytest.raises(WorktreeError, match="has no commits, or no default branch: push a first commit"):
        await opened(shared, "one")
    with pytest.raises(WorktreeError, match="install git"):
        await shared.machine("one", PATH=".:relative").open(shared.url(), SESSION)


async def test_a_ref_that_somebody_else_wrote_is_not_a_session(shared: SharedRepository) -> None:
    git(shared.user, "push", "-q", "origin", f"main:refs/isthmus/sessions/{SESSION}")
    with pytest.raises(WorktreeError, match="is not a checkpoint of Isthmus"):
        await opened(shared, "one")
