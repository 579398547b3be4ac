"""Ends a server of :mod:`local_postgres` when the process that started it has gone, also by ``kill -9``.

It runs as a process of its own, and ends when the server was ended in good order: its file ``owner`` is gone then.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

OWNER = "owner"
"""File in a server's folder with the process that started it: its id, its start time, ``keep`` or ``remove``."""
LOOK_SECONDS = 1.0
"""Time between two looks at the file, and where the system reports no ends of processes, at the process."""
END_SECONDS = 10.0
"""Maximum time for the server to end, beyond which its folder is removed all the same."""


def started_at(pid: int) -> int:
    """Return the time at which a process started, in the system's ticks; 0 if it is gone, or this is not Linux.

    Process ids are used again; together with this they are not.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return 0
    state, *others = stat.rpartition(")")[2].split()
    return 0 if state in "ZX" else int(others[18])


def has_ended(file: Path) -> bool:
    """Return whether the process that a file ``owner`` names has gone; raises OSError or ValueError for other files."""
    pid, started, _ = file.read_text("ascii").split()
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return started_at(int(pid)) != int(started)


def end_of_data(folder: Path) -> None:
    """End the server in a folder at once, if it runs, and remove the folder unless its owner wanted to keep it."""
    is_kept = (folder / OWNER).read_text("ascii").split()[-1] == "keep"
    pid, until = _server_in(folder), time.monotonic() + END_SECONDS
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)  # what pg_ctl sends for an immediate end
    while _server_in(folder) is not None and time.monotonic() < until:
        time.sleep(0.05)
    if is_kept:
        (folder / OWNER).unlink(missing_ok=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _server_in(folder: Path) -> int | None:
    """Return the process id of the server in a folder; None if it does not run."""
    data = folder / "data"
    try:
        pid = int((data / "postmaster.pid").read_text("utf-8").split()[0])
        if pid <= 1:
            return None
        os.kill(pid, 0)
        # After a loss of power the id in the file may be that of anybody; a server works in its data folder.
        is_it = not Path("/proc/self").exists() or Path(f"/proc/{pid}/cwd").samefile(data)
    except (OSError, IndexError, ValueError):
        return None
    return pid if is_it else None


def main(folder: Path) -> None:
    """Wait for the end of the owner of a folder, or of its file."""
    file = folder / OWNER
    with contextlib.suppress(OSError, ValueError):
        poll = select.poll()
        descriptor = None
        with contextlib.suppress(OSError, AttributeError):  # AttributeError: not Linux
            descriptor = os.pidfd_open(int(file.read_text("ascii").split()[0]))
            poll.register(descriptor, select.POLLIN)
        while not has_ended(file):
            poll.poll(LOOK_SECONDS * 1000)
        end_of_data(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
