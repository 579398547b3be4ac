"""Opens files folder by folder from the root, without following symbolic links, so that the checked path is used.

A path that was resolved and found inside a workspace leads elsewhere if a link replaces one of its folders before it is
used. Here each folder is opened relative to the previous one, which excludes that race. POSIX only. Not here: resolving
and allowing paths, see `isthmus.tools.port.workspace`.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path

# With O_PATH (Linux), a folder on the way need not be readable.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """Return a descriptor of the file at an absolute, resolved path.

    Raises:
        OSError: from :func:`os.open`; with ELOOP if the file or a folder above it is a symbolic link.
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
    """Create the folder at an absolute, resolved path and the missing folders above it.

    Raises:
        OSError: as in :func:`open_file`; with ENOTDIR if a part of the path is a file.
    """
    os.close(_open_folder(path, make=True))


def is_link(name: str, folder: int) -> bool:
    """Return whether a name in a folder is currently a symbolic link."""
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
                raise OSError(errno.ELOOP, "a symbolic link appeared in the path", str(path)) from error
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
