"""A guard of a process group: kills it when this process ends in any way, ``kill -9`` included. Linux and macOS.

The guard is a small shell outside of the group, which waits on a pipe that closes with this process. Not here: ending a
group politely, see :mod:`isthmus.tools.shell.process_group`.
"""

import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Callable

from isthmus.runtime.processes import start_process

MARK = "ISTHMUS_PROCESS_GROUP"
"""Environment variable that marks descendants, to find those that left the group; needs /proc."""
_GUARD = """
read -r mark || exit
read -r group && read -r _
kill_marked() {
    grep -lsa "$mark" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do kill -KILL "$pid"; done
}
[ -z "$group" ] || kill -KILL "-$group"
kill_marked
[ -n "$group" ] || { sleep 0.5; kill_marked; }
"""
# The guard gets the mark before the command starts, and finds it even if this process is killed right after that.


def group_members(group: int) -> tuple[int, ...]:
    """Return the ids of the running processes in a group."""
    import psutil

    found: list[int] = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(pid) == group and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return tuple(found)


def signal_followers(group: int, number: int) -> bool:
    """Signal the members of a group except its leader, and return whether there are any.

    For a leader that is a sandbox: if it were signalled, it would kill the others before they could clean up.
    """
    followers = [pid for pid in group_members(group) if pid != group]
    for pid in followers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(followers)


@contextlib.asynccontextmanager
async def group_guard(mark: str, *, is_final: bool = False) -> AsyncGenerator[Callable[[int], None], None]:
    """Start a process that kills the announced group when the pipe to it closes; kill it at the end.

    `mark` is the value of MARK in the group's environment. `is_final`: let the guard kill the group at the end, with
    descendants that left it if there is /proc.
    """
    read_end, write_end = os.pipe()
    try:
        guard = await start_process("/bin/sh", "-c", _GUARD, stdin=read_end, stdout=DEVNULL, stderr=DEVNULL, env={})
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)

    has_group = False

    def announce(group: int) -> None:
        nonlocal has_group
        has_group = True
        os.write(write_end, f"{group}\n".encode())

    try:
        os.write(write_end, f"{mark}\n".encode())
        yield announce
    finally:
        if not (is_final and has_group):
            # Not guard.kill(): it would reap a child that has just ended, without the event loop's knowledge.
            with contextlib.suppress(ProcessLookupError):
                os.kill(guard.pid, signal.SIGKILL)
        os.close(write_end)
        await guard.wait()
