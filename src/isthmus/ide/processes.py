"""Which processes there are: whether the one that a file names is still there, and those above this one.

Which process is an agent's is in :mod:`lineage`.
"""

import os
from typing import Final

MAXIMUM_LEVELS: Final = 32
"""So far up the process tree is looked, as real clients do."""


def process_is_alive(pid: int) -> bool:
    """Whether a process with this id exists, whoever owns it."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # files may name any number
        return False
    except PermissionError:
        return True
    return True


def process_ancestors() -> tuple[int, ...]:
    """The ids of the processes above this one, nearest first."""
    import psutil  # loaded when an IDE is looked for, not at start

    try:
        return tuple(parent.pid for parent in psutil.Process().parents()[:MAXIMUM_LEVELS])
    except psutil.Error:
        return ()
