"""A process that is killed between any two commands of git, or within one, leaves a session that goes on."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.work_files import remove_folder
from support.git_repositories import SharedRepository, git
from support.programs import require
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

GIT = """#!/bin/sh
case " $* " in
    *" $VICTIM "*)
        [ "$MOMENT" = before ] || "$REAL" "$@"
        kill -KILL $PPID
        exit 1 ;;
esac
exec "$REAL" "$@"
"""
CHECKPOINT = """
import asyncio, os, sys
from pathlib import Path
from isthmus.worktrees.repositories import Repositories
from isthmus.worktrees.repository_url import parse_repository

async def main():
    repositories = Repositories(Path(sys.argv[1]), {"PATH": sys.argv[3], "HOME": os.environ["HOME"]})
    worktree = await repositories.at(parse_repository(sys.argv[2]), "session-1")
    await worktree.checkpoint()
    print("not killed")

asyncio.run(main())
"""


def checkpoint_command(shared: SharedRepository, programs: Path) -> list[str]:
    """Return the command that takes a checkpoint on machine one, with git from a folder of programs."""
    path = f"{programs}:{shared.environment['PATH']}"
    return [sys.executable, "-c", CHECKPOINT, str(shared.folder / "one"), f"git+{shared.url().url}", path]


def killed(shared: SharedRepository, victim: str, moment: str) -> None:
    """Take a checkpoint on machine one in a process that ends at a command of git."""
    programs = shared.folder / f"{victim}-{moment}"
    programs.mkdir()
    # The variables of git are ours alone, so that the script gets its own as text.
    script = GIT.replace("$VICTIM", victim).replace("$MOMENT", moment).replace("$REAL", str(require("git")))
    (programs / "git").write_text(script, "utf-8")
    (programs / "git").chmod(0o755)
    done = subprocess.run(checkpoint_command(shared, programs), capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (-9, b""), done.stderr


@pytest.mark.parametrize(
    ("victim", "moment"),
    [("update-index", "before"), ("update-ref", "after"), ("push", "after")],
)
async def test_a_killed_checkpoint_leaves_a_session_that_goes_on(tmp_path: Path, victim: str, moment: str) -> None:
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": "a"}))
    first = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    (first.folder / "kept").write_text("kept", "utf-8")
    await first.checkpoint()
    (first.folder / "new").write_text("new", "utf-8")
    killed(shared, victim, moment)
    again = await shared.machine("one").open(shared.url(), "session-1")
    assert not again.was_taken_over
    await again.worktree.checkpoint()
    other = (await shared.machine("two").open(shared.url(), "session-1")).worktree
    assert sorted(path.name for path in other.folder.iterdir()) == [".git", "a", "kept", "new"]


async def test_a_push_whose_answer_was_lost_is_not_taken_for_another_machines(tmp_path: Path) -> None:
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": "a"}))
    first = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    (tmp_path / "programs").mkdir()
    real = require("git")
    script = f'#!/bin/sh\ncase " $* " in *" push "*) {real} "$@" >{tmp_path}/said; exit 1 ;; esac\nexec {real} "$@"\n'
    (tmp_path / "programs/git").write_text(script, "utf-8")
    (tmp_path / "programs/git").chmod(0o755)
    lossy = replace(
        first, mirror=replace(first.mirror, git=replace(first.mirror.git, program=f"{tmp_path}/programs/git"))
    )
    (first.folder / "new").write_text("1", "utf-8")
    with pytest.raises(WorktreeError, match=r"the push to .* failed"):
        await lossy.checkpoint()
    assert (await first.checkpoint()).commit == shared.refs()["refs/isthmus/sessions/session-1"]
    (first.folder / "new").write_text("2", "utf-8")
    with pytest.raises(WorktreeError, match=r"the push to .* failed"):
        await lossy.checkpoint()
    (first.folder / "new").write_text("3", "utf-8")
    await first.checkpoint()
    assert git(shared.bare, "show", "refs/isthmus/sessions/session-1:new") == "3"


async def test_a_push_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": "a"}))
    first = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    (first.folder / "new").write_text("new", "utf-8")
    pid = tmp_path / "pid"
    (tmp_path / "programs").mkdir()
    script = f'#!/bin/sh\ncase " $* " in *" push "*) echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60 ;; esac\n'
    (tmp_path / "programs/git").write_text(f'{script}exec {require("git")} "$@"\n', "utf-8")
    (tmp_path / "programs/git").chmod(0o755)
    with subprocess.Popen(checkpoint_command(shared, tmp_path / "programs")) as process:
        await eventually_async(pid.exists)
        process.kill()
    await eventually_async(lambda: not psutil.pid_exists(int(pid.read_text("utf-8"))))
    again = await shared.machine("one").open(shared.url(), "session-1")
    await again.worktree.checkpoint()
    assert git(shared.bare, "show", "refs/isthmus/sessions/session-1:new") == "new"


async def test_a_checkpoint_that_was_not_pushed_is_kept_when_the_files_are_lost(tmp_path: Path) -> None:
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": "a"}))
    first = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    (first.folder / "new").write_text("new", "utf-8")
    await first.checkpoint()
    (first.folder / "new").write_text("newer", "utf-8")
    killed(shared, "push", "before")
    remove_folder(first.folder)
    again = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    assert (again.folder / "new").read_text("utf-8") == "newer"
    await again.checkpoint()
    assert git(shared.bare, "show", "refs/isthmus/sessions/session-1:new") == "newer"


async def test_locks_that_killed_processes_left_are_removed(tmp_path: Path) -> None:
    shared = SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": "a"}))
    first = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    (first.folder / "new").write_text("new", "utf-8")
    await first.checkpoint()
    mirror = first.mirror.path
    for path in (
        *(mirror / "refs/remotes/origin/main.lock", mirror / "packed-refs.lock", mirror / "config.lock"),
        *(mirror / "refs/isthmus/sessions/session-1.lock", mirror / "refs/isthmus/pushed/session-1.lock"),
        *(mirror / "refs/heads/isthmus/session-1.lock", mirror / "worktrees/session-1/index.lock"),
        mirror.parent / "indexes/session-1.lock",
    ):
        path.touch()
    (mirror.parent / "mirror.new").mkdir()
    git(shared.user, "commit", "-q", "--allow-empty", "-m", "newer")
    git(shared.user, "push", "-q", "origin", "main")
    other = (await shared.machine("two").open(shared.url(), "session-1")).worktree
    (other.folder / "new").write_text("newer", "utf-8")
    await other.checkpoint()
    again = (await shared.machine("one").open(shared.url(), "session-1")).worktree
    assert (again.folder / "new").read_text("utf-8") == "newer"
    (again.folder / "new").write_text("newest", "utf-8")
    assert (await again.checkpoint()).is_new
