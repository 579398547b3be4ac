"""Placeholders that a sandbox mounts on, so that a confined program cannot create what they stand for.

They are empty folders, and sockets in place of files: git and archivers take no notice of these. They are in the user's
own folder while confined programs run there, and are removed with the last of these programs, in whichever process it
is; a killed process's are removed after the next program. A program that runs must keep them: removing a mount point
would open its path again. Blocks.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

LOCK_FOLDER = "placeholders"
"""Name of the folder of the lock files in one of Isthmus's own folders."""
MAXIMUM_BYTES = 1024 * 1024
"""Maximum size in bytes of a list of placeholders."""


class Placeholders:
    """The placeholders of one workspace while programs of this process are confined to it.

    A lock file is shared by all processes with such programs, and lists what they made. The process that holds it alone
    removes what is listed and still empty. Without a lock file other processes are not considered.
    """

    def __init__(self, lock_file: Path | None) -> None:
        self._lock_file = lock_file
        self._mutex = threading.Lock()
        self._programs = 0
        self._descriptor: int | None = None
        self._made: list[str] = []

    def hold(self) -> Callable[[], None]:
        """Keep the placeholders until the returned function is called, which may be called more than once.

        Raises:
            OSError: the lock file cannot be opened.
        """
        with self._mutex:
            if self._descriptor is None and self._lock_file is not None:
                self._lock_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits for a removal, which is short
                except BaseException:
                    os.close(descriptor)
                    raise
                self._descriptor = descriptor
            self._programs += 1
        return _Once(self._release)

    def make(self, missing: Iterable[tuple[Path, bool]], *, with_sockets: bool = True) -> frozenset[Path]:
        """Make each path that is missing, as a folder or for a file; return those that cannot be made.

        Only for who holds them. Without ``with_sockets`` they are empty files instead of sockets.
        """
        wanted = tuple(missing)
        failed: set[Path] = set()
        with self._mutex:
            self._list([str(path) for path, _ in wanted])
            for path, is_folder in wanted:
                try:
                    if is_folder:
                        path.mkdir(mode=0o755)
                    elif with_sockets:
                        os.mknod(path, stat.S_IFSOCK | 0o600)
                    else:
                        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
                except FileExistsError:
                    pass  # of another program that began at the same time
                except OSError:
                    failed.add(path)
        return frozenset(failed)

    def _release(self) -> None:
        with self._mutex:
            self._programs -= 1
            if self._programs:
                return
            descriptor, self._descriptor = self._descriptor, None
            made, self._made = self._made, []
            if descriptor is None:
                _remove(made)
                return
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(_listed(descriptor))
                os.ftruncate(descriptor, 0)
            except OSError:
                pass  # another process has programs there, and removes them later
            finally:
                os.close(descriptor)

    def _list(self, paths: Sequence[str]) -> None:
        """Add paths to the list of what is made: in the lock file, if there is one."""
        if self._descriptor is None:
            self._made += paths
            return
        with contextlib.suppress(OSError):
            os.lseek(self._descriptor, 0, os.SEEK_END)
            os.write(self._descriptor, "".join(f"{json.dumps(path)}\n" for path in paths).encode())


class _Once:
    """A function that is called the first time alone."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function

    def __call__(self) -> None:
        function, self._function = self._function, None
        if function is not None:
            function()


def _listed(descriptor: int) -> Iterator[str]:
    """Yield the paths in a lock file."""
    for line in os.pread(descriptor, MAXIMUM_BYTES, 0).splitlines():
        with contextlib.suppress(ValueError):
            value: Any = json.loads(line)
            if isinstance(value, str) and Path(value).is_absolute():
                yield value


def _remove(paths: Iterable[str]) -> None:
    """Remove empty files and folders, inner ones first; leave everything else."""
    for path in map(Path, sorted(set(paths), key=len, reverse=True)):
        with contextlib.suppress(OSError, ValueError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                path.rmdir()
            elif stat.S_ISSOCK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size == 0):
                path.unlink()


_of_workspaces: dict[tuple[Path, Path | None], Placeholders] = {}
_mutex = threading.Lock()


def placeholders_of(workspace: Path, own_folder: Path | None) -> Placeholders:
    """Return the placeholders of a workspace, which all programs of this process share.

    ``own_folder`` is a folder of Isthmus's own, in which the lock files are.
    """
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()
    lock_file = None if own_folder is None else own_folder / LOCK_FOLDER / f"{name}.lock"
    with _mutex:
        return _of_workspaces.setdefault((workspace, own_folder), Placeholders(lock_file))
