"""Folders for copies: each is held by a lock while it is used, and removed then, or by the next one. Blocks."""

import fcntl
import os
import secrets
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

REMOVAL_SECONDS = 60.0
"""Maximum time in seconds of each step of a removal."""


def new_place(folder: Path) -> tuple[Path, int]:
    """Make a folder below `folder`, and return it with the descriptor of its lock; remove those that nobody holds.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.iterdir():
        if (lock := _locked(left)) is not None:
            remove(left, lock)
    place = folder / secrets.token_hex(8)
    place.mkdir(mode=0o700)
    lock = _locked(place)
    if lock is None:
        raise OSError("the folder for a copy is in use")
    return place, lock


def remove(place: Path, lock: int) -> None:
    """Remove a folder, however deeply a command nested its folders, and whatever modes they have."""
    try:
        for program in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            if (found := shutil.which(program[0])) is not None:
                words = (found, *program[1:], "--", str(place))
                with suppress(OSError, subprocess.TimeoutExpired):  # the next trial goes on with it
                    subprocess.run(words, check=False, capture_output=True, timeout=REMOVAL_SECONDS)
    finally:
        os.close(lock)


def _locked(folder: Path) -> int | None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
