"""Owner of a lease: an engine in a process, named so that others on this machine can tell whether it is alive."""

import os
import socket
import uuid
from pathlib import Path


def new_owner() -> str:
    """``name:host:pid:start``, unique; the start tells the process from a later one with the same pid."""
    pid = os.getpid()
    return f"{uuid.uuid4().hex}:{_host()}:{pid}:{_start(pid)}"


def is_gone(owner: str) -> bool:
    """Return whether the owner was a process of this machine that has ended. False when that cannot be known."""
    _, host, pid, start = owner.split(":", 3)
    if host != _host():
        return False
    try:
        return _start(int(pid)) != start
    except ProcessLookupError:
        return True


def _host() -> str:
    """Return the scope in which a process number is unique: this machine and container."""
    try:
        space = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{space.removeprefix('pid:')}"


def _start(pid: int) -> str:
    """Return the start of a process. On Linux in ticks since boot: all else changes when the clock is set.

    Raises:
        ProcessLookupError: there is no such process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        import psutil  # not at start: Linux does without

        try:
            return f"{psutil.Process(pid).create_time():.2f}"
        except psutil.NoSuchProcess as error:
            raise ProcessLookupError(pid) from error
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(pid)
    return fields[19]
