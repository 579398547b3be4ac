"""Processes of this machine: whether a process still runs, its working folder, and the ancestors of this process.

:mod:`isthmus.ide.control.lineage` recognises agents among them.
"""

import os
from pathlib import Path
from typing import Final

MAXIMUM_LEVELS: Final = 32
"""Maximum number of ancestors to look up in the process tree, as in real clients."""


def process_is_alive(pid: int) -> bool:
    """Return whether a process with this id runs, of any owner.

    A zombie counts as dead, though it keeps its id: in a container without an init no process ever reaps it.
    """
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # files may name any number
        return False
    except PermissionError:
        pass
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # the process is hidden, or this is not Linux
        return True
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def place_of(pid: int) -> tuple[str | None, str | None]:
    """Return the working folder and the terminal of a process; each is None if unknown or hidden."""
    import psutil  # loaded on demand, not at start

    try:
        process = psutil.Process(pid)
        return process.cwd(), process.terminal()
    except (psutil.Error, ValueError, OverflowError):
        return None, None


def process_ancestors() -> tuple[int, ...]:
    """Return the ids of the processes above this one, nearest first."""
    import psutil  # loaded for a search for IDEs, not at start

    try:
        return tuple(parent.pid for parent in psutil.Process().parents()[:MAXIMUM_LEVELS])
    except psutil.Error:
        return ()
