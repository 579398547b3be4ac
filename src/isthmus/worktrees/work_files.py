"""The files of a worktree as a tree of git, and back. The worktree's own index and ``.git`` file are not used."""

import asyncio
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from isthmus.record import record
from isthmus.text.units import show_size
from isthmus.text.visible import printable
from isthmus.worktrees.git_environment import AUTHOR
from isthmus.worktrees.git_program import Git, as_stdin

MAXIMUM_FILE_BYTES = 95 * 1024 * 1024
"""Maximum size of a new or changed file that is taken; some hosts refuse files of 100 MB."""
NAMED_FILES = 20
"""Maximum number of files that are named as left out."""


@record
class WorkFiles:
    """The files below ``folder``, and the repository and index of git that hold what was taken of them."""

    git: Git
    git_dir: Path
    folder: Path
    index: Path

    async def run(self, *arguments: str, given: bytes = b"", variables: Mapping[str, str] | None = None) -> str:
        """Run git on these files and return its output. Raises as :meth:`Git.text`."""
        where = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.folder), "GIT_INDEX_FILE": str(self.index)}
        return await self.git.text(
            *arguments, folder=self.folder, given=given, variables={**where, **(variables or {})}
        )

    def forget_broken_index(self) -> None:
        """Remove the lock of an index that a killed process left; only while no other process uses it."""
        self.index.with_name(f"{self.index.name}.lock").unlink(missing_ok=True)

    async def has_changes(self) -> bool:
        """Return whether files, other than ignored ones, may differ from those in the index: one command of git.

        Files that :meth:`take` leaves out count as changes.
        """
        return bool(await self._listed())

    async def _listed(self) -> str:
        return await self.run("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")

    async def take(self) -> tuple[str, tuple[str, ...]]:
        """Put all files that are not ignored into the index, and return their tree and the files that are left out.

        Left out are repositories of their own inside of the folder, and files that are too large. No program runs for
        any file, and none of git's commands looks into another repository.
        """
        listed = await self._listed()
        taken: list[str] = []
        gone: list[str] = []
        folders: list[str] = []
        left_out: list[str] = []
        real_folders: dict[str, bool] = {}
        for path in dict.fromkeys(listed.split("\0")):
            if not path:
                continue
            status = _status(self.folder / path) if self._is_real(path.rpartition("/")[0], real_folders) else None
            if path.endswith("/"):
                left_out.append(f"{printable(path)} (a repository of its own)")
            elif status is None:
                gone.append(path)
            elif stat.S_ISDIR(status.st_mode):
                folders.append(path)
            elif stat.S_ISREG(status.st_mode) and status.st_size > MAXIMUM_FILE_BYTES:
                left_out.append(f"{printable(path)} ({show_size(status.st_size)})")
            elif stat.S_ISREG(status.st_mode) and not os.access(self.folder / path, os.R_OK):
                left_out.append(f"{printable(path)} (it cannot be read)")
            else:
                taken.append(path)
        gone += await self._files_among(folders) if folders else ()
        if gone:
            await self.run("update-index", "-z", "--force-remove", "--stdin", given=as_stdin(gone))
        if taken:
            await self.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=as_stdin(taken))
        return await self.run("write-tree"), _some(tuple(left_out))

    def _has_files(self) -> bool:
        return self.index.exists() or any(name != ".git" for name in os.listdir(self.folder))  # noqa: PTH208

    def _is_real(self, folder: str, known: dict[str, bool]) -> bool:
        """Return whether a folder and those above it are real, not links; ``known`` has the answers so far."""
        if not folder:
            return True
        if folder not in known:
            status = _status(self.folder / folder) if self._is_real(folder.rpartition("/")[0], known) else None
            known[folder] = status is not None and stat.S_ISDIR(status.st_mode)
        return known[folder]

    async def _files_among(self, folders: Sequence[str]) -> list[str]:
        """Return those folders whose place in the index a file has; the others are submodules, which stay."""
        listed = (await self.run("ls-files", "-z", "--stage")).split("\0")
        known = {path: entry.startswith("160000 ") for entry, _, path in (line.partition("\t") for line in listed)}
        return [path for path in folders if known.get(path) is False]

    async def put_back(self, commit: str) -> tuple[str, ...]:
        """Give the files the content of a commit: written, removed, with modes and links; ignored files stay.

        Returns the files that are left as they are, as :meth:`take`.
        """
        left_out: tuple[str, ...] = ()
        if await asyncio.to_thread(self._has_files):
            _, left_out = await self.take()
        await self.run("read-tree", "--reset", "-u", f"{commit}^{{tree}}")
        return left_out

    async def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Make a commit by Isthmus, and return its id."""
        named = [word for parent in dict.fromkeys(parents) for word in ("-p", parent)]
        given = message.encode("utf-8", "replace")
        return await self.run("commit-tree", *named, "-F", "-", tree, given=given, variables=AUTHOR)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _some(left_out: tuple[str, ...]) -> tuple[str, ...]:
    more = len(left_out) - NAMED_FILES
    return left_out if more <= 0 else (*left_out[:NAMED_FILES], f"and {more:,} more")


def remove_folder(folder: Path) -> None:
    """Remove a folder with all it contains, also folders that cannot be written. A link is not followed.

    Raises:
        OSError: something in it cannot be removed.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    if not folder.exists():
        return
    folder.chmod(0o700)
    for parent, folders, _ in os.walk(folder):
        for path in (Path(parent) / name for name in folders):
            if not path.is_symlink() and path.stat().st_mode & 0o700 != 0o700:
                path.chmod(0o700)
    shutil.rmtree(folder)
