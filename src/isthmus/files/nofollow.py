"""Files reached from the root folder by folder, none of them a symbolic link: what was checked is what is opened.

A path that was resolved and found to be inside a workspace leads elsewhere when a link takes the place of one of its
folders before it is used. Here each step is made from the folder of the step before, so that there is no such moment.
POSIX only. Deliberately not here: resolving, and which paths are allowed.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path

# With O_PATH a folder need not be readable to be passed through; elsewhere than on Linux it must be.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """Return a descriptor of the file at an absolute, resolved path.

    Raises:
        OSError: from :func:`os.open`; with ELOOP when the file or a folder above it is a symbolic link.
    """
    with folder_of(path) as (folder, name):
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)


@contextlib.contextmanager
def folder_of(path: Path) -> Generator[tuple[int, str]]:
    """Open the folder of an absolute, resolved path; yield its descriptor and the path's name in it.

    The descriptor is for the ``dir_fd`` of other functions, not for reading.

    Raises:
        OSError: as in :func:`open_file`.
    """
    if not path.is_absolute() or path == path.parent:
        raise OSError(errno.EINVAL, "expected the absolute path of a file", str(path))
    folder = _open_folder(path.parent)
    try:
        yield folder, path.name
    finally:
        os.close(folder)


def make_folders(path: Path) -> None:
    """Make the folder at an absolute, resolved path with those missing above it; one that exists stays.

    Raises:
        OSError: as in :func:`open_file`; with ENOTDIR when there is a file in the way.
    """
    os.close(_open_folder(path, make=True))


def is_link(name: str, folder: int) -> bool:
    """Return whether a name in a folder is a symbolic link now."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open_folder(path: Path, *, make: bool = False) -> int:
    descriptor = os.open(path.anchor, _FOLDER)
    for name in path.parts[1:]:
        above = descriptor
        try:
            descriptor = _step(name, above, make=make)
        except NotADirectoryError as error:
            if is_link(name, above):
                raise OSError(errno.ELOOP, "a symbolic link came into the path", str(path)) from error
            raise
        finally:
            os.close(above)
    return descriptor


def _step(name: str, above: int, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            try:
                return os.open(name, _FOLDER, dir_fd=above)
            except FileNotFoundError:
                os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)
