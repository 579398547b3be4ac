"""A worktree of the user's own repository, beside the user's files: ``.isthmus/worktrees/NAME`` on a branch of its own.

Filters in the user's own configuration run, as they do for the user (Git LFS needs them); those in the repository's
configuration do not.
"""

import asyncio
import os
import shlex
import stat
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from isthmus.files.atomic import exclusive
from isthmus.record import record
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line
from isthmus.worktrees.errors import GitFailedError, WorktreeError
from isthmus.worktrees.git_environment import QUIET, names_in_repository, without_filters
from isthmus.worktrees.git_output import LinkedWorktree, read_worktrees
from isthmus.worktrees.git_program import Git
from isthmus.worktrees.included_files import copy_included
from isthmus.worktrees.lock import held
from isthmus.worktrees.names import BRANCHES, check_worktree_name

FOLDER = (".isthmus", "worktrees")
"""Folder of the worktrees below the top of the repository."""
_BASE_FILE = "isthmus-base"
"""File in git's data of a worktree with the commit from which it was made."""
CHECKOUT_SECONDS = 900.0
"""Maximum time in seconds to write the files of a worktree; files of Git LFS may have to be fetched."""
STATUS_SECONDS = 10.0
LOCK_SECONDS = 900.0


@record
class LocalWorktree:
    """A worktree in use. ``main`` is the top of the repository's own worktree, ``common`` its folder of git's data.

    ``top`` is the top of the worktree in which the user began, which may be another one. ``workspace`` is the folder in
    this worktree that corresponds to the one in which the user began. ``notices`` are lines for the user.
    """

    git: Git
    top: Path
    main: Path
    common: Path
    name: str
    workspace: Path
    is_new: bool
    notices: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Top folder of the worktree."""
        return worktree_folder(self.main, self.name)

    @property
    def branch(self) -> str:
        """Name of its branch."""
        return f"{BRANCHES}{self.name}"


def worktree_folder(main: Path, name: str) -> Path:
    """Return the folder of a worktree, below the top of the repository."""
    return main.joinpath(*FOLDER, name)


def worktree_name(main: Path, workspace: str) -> str | None:
    """Return the name of the worktree below ``main`` in which a workspace is; None if it is in none."""
    path = Path(workspace)
    parents = main.joinpath(*FOLDER)
    return path.relative_to(parents).parts[0] if path.is_relative_to(parents) and path != parents else None


@record
class _Repository:
    """The repository of a workspace: ``top`` of its worktree, and its commit ``head``."""

    git: Git
    top: Path
    main: Path
    common: Path
    head: str
    worktrees: tuple[LinkedWorktree, ...]

    def listed(self, folder: Path) -> LinkedWorktree | None:
        """Return the worktree at a folder, if git knows one."""
        return next((one for one in self.worktrees if one.path == str(folder)), None)

    @property
    def names(self) -> list[str]:
        """Names of the worktrees that were made here."""
        return sorted(name for one in self.worktrees if (name := worktree_name(self.main, one.path)) is not None)


async def begin_worktree(
    workspace: Path, name: str, environment: Mapping[str, str], held_until: ExitStack, *, goes_on: bool = False
) -> LocalWorktree:
    """Make the worktree of this name from the last commit, or take the one that there is.

    Args:
        workspace: an existing folder, resolved.
        name: its name.
        environment: the user's variables.
        held_until: holds the worktree, so that no second session takes it.
        goes_on: whether an earlier session goes on, for which the branch may exist without a worktree.

    Raises:
        WorktreeError: there is no repository or commit, or the name is taken; the text says what to do.
    """
    check_worktree_name(name)
    found = await _repository(workspace, environment)
    folder = worktree_folder(found.main, name)
    await asyncio.to_thread(_make_parents, found.main)
    async with held(folder.parent, LOCK_SECONDS):
        found = replace(found, worktrees=await _worktrees(found.git, found.top))
        known = found.listed(folder)
        has_folder = await asyncio.to_thread(os.path.lexists, folder)
        is_new = known is None or not has_folder
        notices = [f"working in the worktree {folder}, as an earlier session left it"]
        if is_new:
            if has_folder:
                raise WorktreeError(
                    f"the name {name} is taken: {folder} exists, and is not a worktree of this repository. Choose"
                    " another name, or move it away"
                )
            notices = await _add(found, folder, name, is_known=known is not None, goes_on=goes_on)
        try:
            held_until.enter_context(exclusive(folder, 0))
        except TimeoutError as error:
            raise WorktreeError(
                f"another session works in the worktree {name}: choose another name, or end that session first"
            ) from error
        if is_new:
            notices += await _include(found, folder)
    place = await asyncio.to_thread(_inside, folder, workspace.relative_to(found.top))
    return LocalWorktree(found.git, found.top, found.main, found.common, name, place, is_new, tuple(notices))


def _inside(folder: Path, relative: Path) -> Path:
    """Return the folder of this relative path in a worktree; its top if there is none that no link leads out of it."""
    inside = (folder / relative).resolve()
    return inside if inside.is_dir() and inside.is_relative_to(folder) else folder


def admin_folder(common: Path, folder: Path) -> Path:
    """Return git's data of a worktree, by what the repository states: the ``.git`` file may have been changed. Blocks.

    Raises:
        WorktreeError: the repository does not know the worktree.
    """
    wanted = str(folder / ".git")
    for entry in (common / "worktrees").glob("*/gitdir"):
        with suppress(OSError, UnicodeDecodeError):
            if os.path.normpath(entry.parent / entry.read_text("utf-8").removesuffix("\n")) == wanted:
                return entry.parent
    raise WorktreeError(
        f"the repository no longer knows the worktree {folder}, whose files stay: see git worktree repair"
    )


def read_base(admin: Path) -> str | None:
    """Return the commit from which a worktree was made; None if it was made from a branch with work."""
    try:
        return (admin / _BASE_FILE).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


async def worktree_names(workspace: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the names of the worktrees that were made in the repository of a workspace.

    Raises:
        WorktreeError: there is no repository.
    """
    return (await _repository(workspace, environment)).names


async def _repository(workspace: Path, environment: Mapping[str, str]) -> _Repository:
    git = await Git.find(environment, QUIET, workspace)
    try:
        top = Path(await git.text("rev-parse", "--show-toplevel", folder=workspace))
        own = Path(await git.text("rev-parse", "--absolute-git-dir", folder=workspace))
        shared = await git.text("rev-parse", "--path-format=absolute", "--git-common-dir", folder=workspace)
    except GitFailedError as error:
        raise _no_repository(workspace, error) from error
    try:
        head = await git.text("rev-parse", "--verify", "--quiet", "HEAD^{commit}", folder=workspace)
    except GitFailedError as error:
        raise WorktreeError(
            "the repository has no commit yet, from which a worktree could be made: make a first one"
            " (git add, git commit), or start without --worktree"
        ) from error
    listed = await git.text("config", "--list", "--show-scope", "--name-only", "-z", folder=workspace)
    git = replace(git, settings={**git.settings, **without_filters(names_in_repository(listed))})
    worktrees = await _worktrees(git, workspace)
    first = worktrees[0] if worktrees else None
    common = await asyncio.to_thread(Path(shared).resolve)
    is_linked = await asyncio.to_thread(own.resolve) != common
    main = Path(first.path) if is_linked and first is not None and not first.is_bare else top
    return _Repository(git, top, main if main.is_dir() else top, common, head, worktrees)


async def _worktrees(git: Git, folder: Path) -> tuple[LinkedWorktree, ...]:
    return read_worktrees(await git.text("worktree", "list", "--porcelain", "-z", folder=folder))


def _no_repository(workspace: Path, error: GitFailedError) -> WorktreeError:
    if "not a git repository" in error.output:
        return WorktreeError(
            f"{visible_line(str(workspace))} is not in a git repository, which --worktree needs: make one (git init,"
            " and a first commit), or start without --worktree"
        )
    if "must be run in a work tree" in error.output:
        return WorktreeError(
            f"{visible_line(str(workspace))} is in a bare repository, or in git's own folder: start in a folder with"
            " the files of a branch"
        )
    return WorktreeError(f"git cannot use the repository of {visible_line(str(workspace))}: {error.output}")


def _make_parents(main: Path) -> None:
    """Create the folder of the worktrees, which git ignores by a file in it. A link is not followed."""
    folder = main
    for name in FOLDER:
        folder /= name
        try:
            folder.mkdir(exist_ok=True)
            if not stat.S_ISDIR(folder.lstat().st_mode):
                raise WorktreeError(f"{folder} is a link, not a folder: remove it, so that worktrees are made there")
        except OSError as error:
            raise WorktreeError(f"{folder} cannot be created: {error.strerror}") from error
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(folder / ".gitignore", flags, 0o666)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("*\n")


async def _add(found: _Repository, folder: Path, name: str, *, is_known: bool, goes_on: bool) -> list[str]:
    """Make the worktree, and return notices for the user."""
    branch = f"{BRANCHES}{name}"
    has_branch = await _has_branch(found, branch)
    if has_branch and not (is_known or goes_on):
        raise WorktreeError(
            f"the name {name} is taken: the branch {branch} exists, with the work of an earlier session. Choose another"
            f" name, go on there (--worktree {name} --continue), or delete it (git branch -D {branch})"
        )
    options = ("--quiet", *(("--force",) if is_known else ()))
    chosen = (str(folder), branch) if has_branch else ("--no-track", "-b", branch, str(folder), found.head)
    try:
        await found.git.text("worktree", "add", *options, *chosen, folder=found.top, seconds=CHECKOUT_SECONDS)
    except GitFailedError as error:
        raise WorktreeError(f"the worktree {name} cannot be made: {error.output}") from error
    if not has_branch:
        admin = await asyncio.to_thread(admin_folder, found.common, folder)
        (admin / _BASE_FILE).write_text(f"{found.head}\n", "ascii")
    begin = f"the branch {branch}" if has_branch else f"commit {found.head[:10]}"
    notices = [f"working in the worktree {folder}, made from {begin}"]
    if not has_branch and await _has_changes(found):
        notices.append("your changes that are not committed are not in it")
    return notices


async def _has_branch(found: _Repository, branch: str) -> bool:
    try:
        await found.git.text("show-ref", "--verify", "--quiet", f"refs/heads/{branch}", folder=found.top)
    except GitFailedError:
        return False
    return True


async def _has_changes(found: _Repository) -> bool:
    try:
        options = ("--porcelain", "-z", "--ignore-submodules=all")
        return bool(await found.git.text("status", *options, folder=found.top, seconds=STATUS_SECONDS))
    except WorktreeError:
        return False  # a large repository that is not cached


async def _include(found: _Repository, folder: Path) -> list[str]:
    """Copy what the user wants in new worktrees, and return notices for the user."""
    notices: list[str] = []
    try:
        if copied := await copy_included(found.git, found.top, folder):
            notices.append(f"copied into it, as .worktreeinclude says: {show_count(copied, 'ignored file')}")
    except WorktreeError as error:
        notices.append(str(error))
    if await asyncio.to_thread((folder / ".gitmodules").is_file):
        where = shlex.quote(str(folder))
        notices.append(f"submodules are empty in it; to fetch them: git -C {where} submodule update --init")
    if any(name.startswith("filter.") for name in found.git.settings):
        notices.append("filters in the repository's own configuration did not run on its files")
    return notices
