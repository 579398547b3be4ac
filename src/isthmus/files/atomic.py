"""Atomic writing of files, so that no reader sees half a file, and bounded reading of regular files.

The new content goes to a temporary file in the same folder, which replaces the old file in a single step. Symbolic
links are followed by default, and the mode stays.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from isthmus.errors import IsthmusError
from isthmus.files.nofollow import folder_of, open_file

LOCK_SECONDS = 30.0
"""Maximum wait in seconds for a lock."""
LOCK_POLL_SECONDS = 0.01
ABANDONED_SECONDS = 3600.0
"""Age in seconds above which a temporary file was left by a process that was killed while writing."""
_TEMPORARY = ".isthmus-{}.tmp"
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


class FileChangedError(IsthmusError):
    """Failure to write because the file does not have the expected content; nothing was written."""


def read_regular(path: Path, maximum_bytes: int, *, through_links: bool = True) -> bytes:
    """Return the content of a regular file, without waiting for a pipe, reading a device or following a growing file.

    Without `through_links` the path must be resolved, and a link that has appeared in it since is refused.

    Raises:
        OSError: it cannot be read, is not a regular file (EINVAL, EISDIR), or is larger than `maximum_bytes` (EFBIG);
            ELOOP for a link.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags) if through_links else open_file(path, flags)
    with reader_of(descriptor) as file:
        require_regular(os.fstat(descriptor))
        data = file.read(maximum_bytes + 1)
    if len(data) > maximum_bytes:
        raise OSError(errno.EFBIG, f"larger than {maximum_bytes} bytes")
    return data


def reader_of(descriptor: int) -> BinaryIO:
    """Return a file that owns a descriptor. Unlike ``os.fdopen``, close the descriptor if it is a folder's.

    Raises:
        IsADirectoryError: the descriptor is a folder's.
    """
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def exclusive(path: Path, seconds: float = LOCK_SECONDS) -> Generator[int]:
    """Hold the lock file `path` during a change that no other thread or process must make at the same time.

    The file is created and stays; the lock ends with the process. Blocks while another holder has the lock. `path` may
    also be an existing folder. Yields the descriptor of the lock: a child process that inherits it holds the lock, too.

    Raises:
        TimeoutError: another holder had the lock for `seconds`.
        OSError: the file cannot be created.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, f"another process changes it for {seconds:g} s") from error
                time.sleep(LOCK_POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def require_regular(status: os.stat_result) -> None:
    """Check that a status describes a regular file.

    Raises:
        OSError: it is a folder (IsADirectoryError), or a device, pipe or socket (EINVAL).
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file (a device, pipe or socket)")


def write_atomic(path: Path, data: bytes, *, mode: int | None = None, through_links: bool = True) -> None:
    """Write `data` to `path`, replacing any file. `mode` is the mode of the file; None keeps the old one.

    Without `through_links` a symbolic link at `path` is replaced: in a folder that others can write, it may have been
    created to lead the content elsewhere.

    Raises:
        OSError: the file cannot be written; PermissionError also if its mode has no permission to write.
    """
    target = path.resolve()
    if not through_links:
        target = path.parent.resolve() / path.name
        if target.is_symlink():
            target.unlink(missing_ok=True)
    _write(target, data, mode, lambda _folder: None)


def write_if_unchanged(
    path: Path, data: bytes, expected: bytes | None, *, mode: int | None = None, through_links: bool = True
) -> None:
    """Write `data` to `path` if its content is still `expected`; None means that the file must not exist yet.

    The comparison directly precedes the replacement; a file that was created meanwhile is never overwritten. `mode` is
    the mode of the file; None keeps the old one. The owner stays. Without `through_links` the path must be resolved,
    and nothing is written if a link has appeared in it since.

    Raises:
        FileChangedError: another program changed, created or removed the file.
        OSError: as in :func:`write_atomic`; ELOOP for a link.
    """
    target = path.resolve() if through_links else path
    is_new = expected is None
    check = partial(_check_content, target, expected)
    _write(target, data, mode, check, is_new=is_new, keeps_owner=not is_new)


def remove_if_unchanged(path: Path, expected: bytes) -> None:
    """Remove the file at the resolved `path` if its content is still `expected`.

    Raises:
        FileChangedError: another program changed or removed the file.
        OSError: the file cannot be removed; PermissionError also if its mode has no permission to write; ELOOP for a
            link in the path.
    """
    with folder_of(path) as (folder, name):
        if not os.access(name, os.W_OK, dir_fd=folder, follow_symlinks=True):
            raise PermissionError(f"{path} is read-only")
        _check_content(path, expected, folder)
        os.unlink(name, dir_fd=folder)
        _sync_folder(folder)


def _check_content(path: Path, expected: bytes | None, folder: int) -> None:
    """Raise FileChangedError if a file of an open folder does not have the expected content; None if it must be new."""
    try:
        descriptor = os.open(path.name, os.O_RDONLY | os.O_NONBLOCK | _NO_LINK, dir_fd=folder)
        with reader_of(descriptor) as file:
            current = file.read(len(expected or b"") + 1)  # more of it changes nothing, however large it has become
    except FileNotFoundError:
        current = None
    if current != expected:
        happened = "was removed" if current is None else "appeared" if expected is None else "changed"
        raise FileChangedError(f"{path} {happened} meanwhile; nothing was written")


def forget_abandoned(folder: Path) -> None:
    """Remove temporary files from one of our folders, left by processes that were killed while writing.

    Raises:
        OSError: one of them cannot be removed.
    """
    for file in folder.glob(_TEMPORARY.format("*")):
        with contextlib.suppress(FileNotFoundError):  # another process removes it, too, or has finished writing
            if time.time() - file.lstat().st_mtime > ABANDONED_SECONDS:
                file.unlink()


def _write(
    target: Path,
    data: bytes,
    mode: int | None,
    check: Callable[[int], None],
    *,
    is_new: bool = False,
    keeps_owner: bool = False,
) -> None:
    """Write to a resolved path. `check` is called with the descriptor of its folder before the replacement.

    The owner of the old file stays with its mode, and with `keeps_owner` also where there is another mode.
    """
    with folder_of(target) as (folder, name):
        previous = _status(name, folder)
        if previous is not None and stat.S_ISDIR(previous.st_mode):
            raise IsADirectoryError(f"{target} is a folder")
        if previous is not None and stat.S_ISLNK(previous.st_mode):
            raise OSError(errno.ELOOP, "a symbolic link took its place", str(target))
        if previous is not None and not (previous.st_mode & 0o222 and os.access(name, os.W_OK, dir_fd=folder)):
            raise PermissionError(f"{target} is read-only")
        # A fixed short name: one made from a long file name may be too long for the file system.
        temporary = _TEMPORARY.format(secrets.token_hex(8))
        created_mode = mode if mode is not None else 0o666
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, created_mode, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if previous is not None and (mode is None or keeps_owner):
                    _keep_owner_and_mode(file.fileno(), previous)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            check(folder)
            if is_new:
                _place_new(temporary, name, folder, target)
            else:
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        _sync_folder(folder)


def _place_new(temporary: str, name: str, folder: int, target: Path) -> None:
    try:
        # Unlike a rename, a link fails if the name has been taken since the check.
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError as error:
        raise FileChangedError(f"{target} appeared meanwhile; nothing was written") from error
    except OSError:
        # A file system without hard links.
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _keep_owner_and_mode(descriptor: int, previous: os.stat_result) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (previous.st_uid, previous.st_gid):
        # Only the superuser may change the owner; the content matters more.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, previous.st_uid, previous.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(previous.st_mode))


def _sync_folder(folder: int) -> None:
    descriptor = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
