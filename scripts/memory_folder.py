"""A folder for the files of a run of tests that is in memory: tests of journals wait for disks.

Journals, databases and repositories of tests wait for a disk to keep what nobody reads after the run. Where memory is
short, or is not a folder of the system, the run has the ordinary folder for temporary files.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it has a random name
NEEDED_BYTES = 6 * 1024**3
"""Minimum free bytes, of the folder and of the machine's memory: a run writes about 2 GiB."""
PREFIX = "isthmus-tests-"


@contextmanager
def memory_folder(memory: Path = MEMORY, needed: int = NEEDED_BYTES) -> Generator[Path | None]:
    """Yield a new folder in memory, which is removed afterwards; None where there is not enough of it.

    Folders of runs that were killed are removed first.
    """
    if not _has_room(memory, needed):
        yield None
        return
    for left in memory.glob(f"{PREFIX}*"):
        pid = left.name.removeprefix(PREFIX).partition("-")[0]
        if not (pid.isdigit() and psutil.pid_exists(int(pid))):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=memory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _has_room(memory: Path, needed: int) -> bool:
    try:
        free = shutil.disk_usage(memory).free
    except OSError:
        return False
    return os.access(memory, os.W_OK) and min(free, psutil.virtual_memory().available) >= needed
