"""A file at a moment: does it exist, what does it hold, what is its mode. And making it so again.

Nothing is overwritten that was not looked at right before. Deliberately not here: where content is kept.
"""

import contextlib
import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.files.atomic import FileChangedError, read_regular, write_if_unchanged
from isthmus.files.nofollow import folder_of, make_folders, open_file

MAXIMUM_FILE_BYTES = 20 * 1024 * 1024
"""Larger files are not kept; the tools do not edit them either."""


class UnkeptError(IsthmusError):
    """The former state of a file is unknown and cannot be restored, or its present state was not kept."""


@dataclass(frozen=True, slots=True)
class FileState:
    """``hash`` is the SHA-256 of its content, None for a file that does not exist or whose content is not kept.

    ``mode`` are its permission bits. ``missing_folders`` are those that a file which does not exist would need, the
    outermost first. ``why_unkept`` says why a file that exists is not kept.
    """

    exists: bool
    hash: str | None = None
    mode: int = 0
    missing_folders: tuple[str, ...] = ()
    why_unkept: str | None = None

    def is_same(self, other: "FileState") -> bool:
        """Return whether both are the same content and mode; False when one of them is not known."""
        if not self.exists or not other.exists:
            return self.exists == other.exists
        return self.hash is not None and (self.hash, self.mode) == (other.hash, other.mode)


def read_state(path: Path) -> tuple[FileState, bytes | None]:
    """Return the state of a file now, and its content when it can be kept. Never follows a link.

    Raises:
        OSError: it cannot be looked at.
    """
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        missing = [str(folder) for folder in path.parents if not folder.exists()]
        return FileState(exists=False, missing_folders=tuple(reversed(missing))), None
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return FileState(exists=True, mode=mode, why_unkept="it is not a regular file"), None
    try:
        data = read_regular(path, MAXIMUM_FILE_BYTES, through_links=False)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return FileState(exists=True, mode=mode, why_unkept="a symbolic link came into its path"), None
        if error.errno != errno.EFBIG:
            raise
        return FileState(exists=True, mode=mode, why_unkept=f"it has more than {MAXIMUM_FILE_BYTES} bytes"), None
    return FileState(exists=True, hash=hashlib.sha256(data).hexdigest(), mode=mode), data


def put_back(path: Path, target: FileState, content: bytes | None, now: FileState, now_content: bytes | None) -> None:
    """Make a file what it was (``target``, ``content``), if it still is what it was found as (``now``).

    Raises:
        OSError: it cannot be written or removed.
        UnkeptError: its folder is elsewhere now.
        FileChangedError: it changed meanwhile; it is as it was.
    """
    if path.parent.exists() and path.parent.resolve() != path.parent:
        raise UnkeptError("its folder is a link to another place now")
    if not target.exists:
        if read_state(path)[1] != now_content:
            raise FileChangedError(f"{path} changed meanwhile; it was not removed")
        with contextlib.suppress(FileNotFoundError), folder_of(path) as (inside, name):
            os.unlink(name, dir_fd=inside)
        for folder in reversed(target.missing_folders):
            try:
                os.rmdir(folder)  # noqa: PTH106 - a text out of the store
            except OSError:
                break  # Somebody keeps something else in it.
        return
    if content is None:
        raise UnkeptError(target.why_unkept or "its content is not kept")
    if target.hash != now.hash:
        make_folders(path.parent)
        write_if_unchanged(path, content, now_content, through_links=False)
    descriptor = open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != target.mode:
            os.fchmod(descriptor, target.mode)
    finally:
        os.close(descriptor)
