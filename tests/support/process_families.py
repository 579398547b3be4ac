"""The processes below another one, of which any may end by itself while it is looked at."""

import contextlib

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs: it has neither ended nor become a zombie that waits for its parent."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it has ended between the two looks
        return False


def commands_below(root: psutil.Process) -> list[tuple[psutil.Process, list[str]]]:
    """Return the processes below one with their command lines, without those that have ended."""
    found: list[tuple[psutil.Process, list[str]]] = []
    for process in root.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append((process, process.cmdline()))
    return found


def kill_below(root: psutil.Process) -> None:
    """Kill all processes below one, so that none of them notices the end of another one.

    Each is suspended first. A process may start others until then, so the list is read until nothing is new in it.
    """
    seen: set[psutil.Process] = set()
    while found := set(root.children(recursive=True)) - seen:
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        seen |= found
    for process in seen:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
