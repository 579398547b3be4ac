"""Names of lease owners: an engine in a process, named so that others on this machine can check if it is alive."""

import os
import socket
import uuid
from pathlib import Path

MACHINE = "ISTHMUS_MACHINE"
"""Environment variable with a name of this machine that no other one has."""


def new_owner() -> str:
    """Return ``name:host:pid:start``, unique: the start time distinguishes a later process with the same pid."""
    pid = os.getpid()
    return f"{uuid.uuid4().hex}:{_host()}:{pid}:{_start(pid)}"


def is_gone(owner: str) -> bool:
    """Return whether the owner was a process of this machine that has ended; False if that is unknown."""
    return is_alive(owner) is False


def is_alive(owner: str) -> bool | None:
    """Return whether the owner is a process of this machine that has not ended; None for those of other machines."""
    match owner.split(":"):
        case [_, host, pid, start] if host == _host() and pid.isdecimal():
            pass
        case _:
            return None
    try:
        return _start(int(pid)) == start
    except ProcessLookupError:
        return False


def machine_and_pid(owner: str) -> tuple[str, int] | None:
    """Return the name of the machine (or container) on which an owner runs, and its process id; None if unknown."""
    match owner.split(":"):
        case [_, host, pid, _] if pid.isdecimal() and pid.isascii() and len(pid) < 12:
            return host.partition("/")[0], int(pid)
        case _:
            return None


def _host() -> str:
    """Return the scope in which a process number is unique: this machine, since it was started, and container.

    Machines may have the same name, and write to one journal in a database. ISTHMUS_MACHINE replaces what tells them
    apart, for machines that are copies of each other.
    """
    try:
        space = Path("/proc/self/ns/pid").readlink().name
        start = os.environ.get(MACHINE) or Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{start.replace(':', '_')}/{space.removeprefix('pid:')}"


def _start(pid: int) -> str:
    """Return the start time of a process; on Linux in ticks since boot, which setting the clock does not change.

    Raises:
        ProcessLookupError: there is no such process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        import psutil  # imported late: not needed on Linux

        try:
            return f"{psutil.Process(pid).create_time():.2f}"
        except psutil.NoSuchProcess as error:
            raise ProcessLookupError(pid) from error
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        raise ProcessLookupError(pid)
    return fields[19]
