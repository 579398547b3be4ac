"""Who holds a lease: an engine in a process, named so that others on this machine can tell whether it still lives."""

import os
import socket
import uuid

import psutil


def new_owner() -> str:
    """``name:host:pid:start``, unique; the start time tells the process from a later one with the same pid."""
    pid = os.getpid()
    return f"{uuid.uuid4().hex}:{socket.gethostname()}:{pid}:{psutil.Process(pid).create_time():.2f}"


def is_gone(owner: str) -> bool:
    """The owner was a process of this machine that has ended. False when that cannot be known."""
    _, host, pid, start = owner.split(":", 3)
    if host != socket.gethostname():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != start
    except psutil.NoSuchProcess:
        return True
