"""The end of a session in a worktree of the user's repository: the work on its branch, or nothing left of it."""

import asyncio
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

from isthmus.record import record
from isthmus.text.units import show_count
from isthmus.worktrees.errors import GitFailedError
from isthmus.worktrees.local_worktree import LOCK_SECONDS, LocalWorktree, admin_folder, read_base
from isthmus.worktrees.lock import held
from isthmus.worktrees.names import BRANCHES
from isthmus.worktrees.work_files import WorkFiles, remove_folder

_UNDER_WAY = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
"""Files of git's data that are there while an operation waits for the user."""


@record
class WorktreeEnd:
    """Lines for the user on what became of the worktree. ``is_removed``: it was, since nothing was changed in it."""

    lines: tuple[str, ...]
    is_removed: bool = False


async def end_worktree(worktree: LocalWorktree, title: str) -> WorktreeEnd:
    """Commit what was changed to the branch of the worktree; remove both if nothing was changed.

    The caller holds the worktree. Nothing is committed while a merge or the like is under way, or another branch is
    checked out.

    Raises:
        WorktreeError: git failed; the worktree stays.
    """
    if not worktree.folder.is_dir():
        return WorktreeEnd((f"the worktree {worktree.folder} was removed meanwhile",))
    async with held(worktree.folder.parent, LOCK_SECONDS):
        return await _end(worktree, title)


async def _end(worktree: LocalWorktree, title: str) -> WorktreeEnd:
    admin = await asyncio.to_thread(admin_folder, worktree.common, worktree.folder)
    own = WorkFiles(worktree.git, admin, worktree.folder, admin / "index")
    ref = f"refs/heads/{worktree.branch}"
    head = await own.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if await _current(own) != ref:
        return WorktreeEnd(_kept(worktree, "another branch is checked out; nothing was committed"))
    if any((admin / name).exists() for name in _UNDER_WAY):
        return WorktreeEnd(_kept(worktree, "a merge or the like is under way; nothing was committed"))
    copy = admin / "isthmus-index"
    await asyncio.to_thread(shutil.copyfile, own.index, copy)
    files = WorkFiles(worktree.git, admin, worktree.folder, copy)
    try:
        files.forget_broken_index()
        tree, left_out = await files.take()
        if tree != await own.run("rev-parse", f"{head}^{{tree}}"):
            subject = " ".join(title.split())[:72] or "Work of a session of Isthmus"
            commit = await files.commit(tree, (head,), f"{subject}\n")
            await own.run("update-ref", ref, commit, head)
            head = commit
            await own.run("read-tree", "--reset", commit)
            with suppress(GitFailedError):  # files that were left out
                await own.run("update-index", "-q", "--refresh")
    except GitFailedError as error:
        return WorktreeEnd(_kept(worktree, f"nothing was committed, since git {error.command} failed: {error.output}"))
    finally:
        copy.unlink(missing_ok=True)
    if not left_out and not (admin / "modules").exists() and not await _has_work(worktree, admin, ref, head):
        await asyncio.to_thread(remove_folder, worktree.folder)
        await asyncio.to_thread(remove_folder, admin)
        await worktree.git.text("update-ref", "-d", ref, head, folder=worktree.main)
        return WorktreeEnd(
            (f"nothing was changed in the worktree {worktree.name}, which was removed",), is_removed=True
        )
    return WorktreeEnd(await _work(worktree, ref, left_out))


async def _current(own: WorkFiles) -> str | None:
    try:
        return await own.run("symbolic-ref", "--quiet", "HEAD")
    except GitFailedError:
        return None


async def _has_work(worktree: LocalWorktree, admin: Path, ref: str, head: str) -> bool:
    """Return whether there are commits behind the first one that none of the user's branches has."""
    if head == read_base(admin):
        return False
    others = ("--not", "HEAD", f"--exclude={BRANCHES}*", "--branches", "--tags", "--remotes")
    return await worktree.git.text("rev-list", "--count", ref, *others, folder=worktree.main) != "0"


async def _work(worktree: LocalWorktree, ref: str, left_out: tuple[str, ...]) -> tuple[str, ...]:
    """Return lines that say where the work is, and what can be done with it."""
    commits = await worktree.git.text("rev-list", "--count", ref, "--not", "HEAD", folder=worktree.main)
    changes = ""
    with suppress(GitFailedError):  # the branch has another beginning
        options = ("--shortstat", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
        changes = (await worktree.git.text("diff", *options, f"HEAD...{ref}", folder=worktree.main)).strip()
    counted = ", ".join(part for part in (show_count(int(commits), "commit"), changes) if part)
    folder = shlex.quote(str(worktree.folder))
    force = "--force " if left_out else ""
    return (
        f"the work is on the branch {worktree.branch} ({counted}), its files are in {worktree.folder}",
        *((f"not committed: {', '.join(left_out)}",) if left_out else ()),
        f"  see it:  git diff HEAD...{worktree.branch}",
        f"  take it: git merge {worktree.branch}",
        f"  go on:   isthmus --worktree {worktree.name} --continue",
        f"  remove:  git worktree remove {force}{folder} && git branch -D {worktree.branch}",
    )


def _kept(worktree: LocalWorktree, why: str) -> tuple[str, ...]:
    return (
        f"the worktree {worktree.folder} stays as it is: {why}",
        f"  go on:   isthmus --worktree {worktree.name} --continue",
    )
