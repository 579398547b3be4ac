"""Who holds a lease: a process, named so that others on the same machine can tell whether it still lives."""

import os
import socket
from functools import cache

import psutil


@cache
def this_owner() -> str:
    """``host:pid:start`` of this process; the start time tells it from a later process with the same pid."""
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{psutil.Process(pid).create_time():.2f}"


def is_gone(owner: str) -> bool:
    """The owner was a process of this machine that has ended. False when that cannot be known."""
    host, pid, start = owner.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != start
    except psutil.NoSuchProcess:
        return True
