"""A small file system for a test that fills it: a tmpfs that nobody else sees, which needs root.

Without root a limit on the size of files takes its place (:func:`limit_files`).
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from local_postgres import SHARED

_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
_OWN_PLACE = 0x00000200  # CLONE_FS
_PRIVATE = 0x00044000  # MS_REC | MS_PRIVATE
_CHUNK = 64 * 1024


class SmallDisk:
    """A file system of a fixed size, mounted at ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filling = folder / "filling"

    def fill(self) -> None:
        """Take all space that is left, to the last byte."""
        with self._filling.open("ab", 0) as file:
            for size in (_CHUNK, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def free(self) -> None:
        """Give it back."""
        self._filling.unlink(missing_ok=True)


@contextmanager
def small_disk(size: str) -> Generator[SmallDisk]:
    """Mount a file system of a size such as "256m", for this thread and what it starts from now on.

    It vanishes with the last process that sees it, also when the test is killed. Every user can enter it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    place, folder = Path.cwd(), Path(tempfile.mkdtemp(prefix="isthmus-disk-", dir=SHARED))
    folder.chmod(0o755)
    with Path("/proc/thread-self/ns/mnt").open("rb") as before:
        _checked(libc.unshare(_NEW_MOUNTS))
        try:
            _checked(libc.mount(b"none", b"/", None, _PRIVATE, None))
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", folder], check=True)
            yield SmallDisk(folder)
        finally:
            # Threads that were started meanwhile share the place in which a thread may change its mounts.
            _checked(libc.unshare(_OWN_PLACE))
            _checked(libc.setns(before.fileno(), _NEW_MOUNTS))
            os.chdir(place)
            folder.rmdir()


def limit_files(pid: int, size: int | None) -> None:
    """Let writes of a process and those that it has started fail beyond a size of a file in bytes; None: no limit."""
    soft = resource.RLIM_INFINITY if size is None else size
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(one.pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
