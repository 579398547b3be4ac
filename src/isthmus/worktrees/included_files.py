"""Ignored files of the user that a new worktree gets: those that ``.worktreeinclude`` names, as Claude Code reads it.

The file is part of the repository, and has patterns in the form of ``.gitignore``. It only leads from the user's
worktree into one that is made of it.
"""

import asyncio
import stat
from pathlib import Path

from isthmus.files.atomic import read_regular, write_if_unchanged
from isthmus.files.nofollow import make_folders
from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.git_program import Git

NAME = ".worktreeinclude"
MAXIMUM_BYTES = 64 * 1024 * 1024
"""Maximum size of all files together."""
MAXIMUM_FILES = 2000


async def copy_included(git: Git, top: Path, folder: Path) -> int:
    """Copy the files from the worktree ``top`` into the new one, and return how many; links are left out.

    Both paths are resolved.

    Raises:
        WorktreeError: git failed, there are too many files, or one cannot be copied.
    """
    patterns = top / NAME
    if not await asyncio.to_thread(lambda: patterns.is_file() and not patterns.is_symlink()):
        return 0
    options = ("ls-files", "-z", "--others", "--ignored")
    named = (await git.text(*options, f"--exclude-from={patterns}", folder=top)).split("\0")
    ignored = set((await git.text(*options, "--exclude-standard", folder=top)).split("\0"))
    wanted = [path for path in named if path and path in ignored and not path.startswith(".isthmus/")]
    if len(wanted) > MAXIMUM_FILES:
        raise WorktreeError(f"{NAME} names {len(wanted):,} files; at most {MAXIMUM_FILES:,} are copied: name fewer")
    return await asyncio.to_thread(_copy, top, folder, wanted)


def _copy(top: Path, folder: Path, paths: list[str]) -> int:
    left, copied = MAXIMUM_BYTES, 0
    for path in paths:
        try:
            status = (top / path).lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            data = read_regular(top / path, left, through_links=False)
            left -= len(data)
            make_folders((folder / path).parent)
            write_if_unchanged(folder / path, data, None, mode=stat.S_IMODE(status.st_mode), through_links=False)
            copied += 1
        except OSError as error:
            raise WorktreeError(f"{NAME}: {path} cannot be copied into the worktree: {error.strerror}") from error
    return copied
