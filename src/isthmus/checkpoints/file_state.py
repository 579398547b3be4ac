"""State of a file (existence, content and mode), and its restore.

A file is overwritten only after a check of its present content. Not here: storing content, see
`isthmus.checkpoints.store`.
"""

import contextlib
import errno
import hashlib
import os
import stat
from pathlib import Path

from isthmus.errors import IsthmusError
from isthmus.files.atomic import FileChangedError, read_regular, write_if_unchanged
from isthmus.files.nofollow import folder_of, make_folders, open_file
from isthmus.record import record

MAXIMUM_FILE_BYTES = 20 * 1024 * 1024
"""Maximum size in bytes of a file that is kept; the tools do not edit larger ones either."""


class UnkeptError(IsthmusError):
    """Failure to restore a file because its earlier or present content is not kept."""


@record
class FileState:
    """State of a file. ``hash`` is the SHA-256 of its content; None if it does not exist or its content is not kept.

    ``mode`` contains its permission bits. ``missing_folders`` are the missing folders above a missing file, outermost
    first. ``why_unkept`` is the reason why the content of an existing file is not kept.
    """

    exists: bool
    hash: str | None = None
    mode: int = 0
    missing_folders: tuple[str, ...] = ()
    why_unkept: str | None = None

    def is_same(self, other: "FileState") -> bool:
        """Return whether both have the same content and mode; False if one of them is unknown."""
        if not self.exists or not other.exists:
            return self.exists == other.exists
        return self.hash is not None and (self.hash, self.mode) == (other.hash, other.mode)


def read_state(path: Path) -> tuple[FileState, bytes | None]:
    """Return the present state of a file, and its content if it can be kept. Never follows a link.

    Raises:
        OSError: the file cannot be read.
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
            return FileState(exists=True, mode=mode, why_unkept="a symbolic link appeared in its path"), None
        if error.errno != errno.EFBIG:
            raise
        return FileState(exists=True, mode=mode, why_unkept=f"it has more than {MAXIMUM_FILE_BYTES} bytes"), None
    return FileState(exists=True, hash=hashlib.sha256(data).hexdigest(), mode=mode), data


def put_back(path: Path, target: FileState, content: bytes | None, now: FileState, now_content: bytes | None) -> None:
    """Restore a file to ``target`` and ``content``, if its state is still ``now``.

    Raises:
        OSError: the file cannot be written or removed.
        UnkeptError: its folder is now a link to another place, or its content is not kept.
        FileChangedError: the file changed meanwhile; it was not touched.
    """
    if path.parent.exists() and path.parent.resolve() != path.parent:
        raise UnkeptError("its folder is now a link to another place")
    if not target.exists:
        if read_state(path)[1] != now_content:
            raise FileChangedError(f"{path} changed meanwhile; it was not removed")
        with contextlib.suppress(FileNotFoundError), folder_of(path) as (inside, name):
            os.unlink(name, dir_fd=inside)
        for folder in reversed(target.missing_folders):
            try:
                os.rmdir(folder)  # noqa: PTH106 - a text from the store
            except OSError:
                break  # It contains something else by now.
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
