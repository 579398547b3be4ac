"""Whether the process that a file names is still there. Which process is an agent's is in :mod:`lineage`."""

import os


def process_is_alive(pid: int) -> bool:
    """Whether a process with this id exists, whoever owns it."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
