"""Descriptors, child processes and transports that a test opened and did not close.

The tests of a run share a process: what one of them leaves open is closed by the garbage collector in the middle of
another one, or by nobody. So each test answers for its own. Objects without a descriptor of their own (memory streams,
tasks) are not found here but by the warnings of the garbage collector, which fail a test as well.
"""

import asyncio
import contextlib
import gc
import io
import os
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import psutil

SECONDS = 2.0
"""Time in which threads and event loops that outlive a test may close what it left."""

STRICT_ROOMS = ("tests/unit/", "tests/contract/")
"""Folders whose tests leave nothing at all, not even LEFT_TO_THE_COLLECTOR."""

CLOSING_ROOMS = (*STRICT_ROOMS, "tests/peers/")
"""Folders whose tests fail for descriptors and processes that are open at their end; the others, which end real
programs at any moment, are warned."""

LEFT_TO_THE_COLLECTOR = {
    "<function (Popen|BaseSubprocessTransport).__del__": (
        "asyncio holds a process that it starts in the moment in which the loop ends, and ends it with nobody's help"
    ),
    "<function (_Unix(Read|Write)Pipe|_Selector)Transport.__del__": (
        "asyncio accepts a connection, or connects a pipe, in the moment in which the loop ends"
    ),
    "<function StreamWriter.__del__": "the writer of such a connection, whose handler never began",
    "<_io.FileIO name=[0-9]+ mode=": "the pipe of such a process before it has a transport",
    "<socket.socket fd=": "the socket of such a connection before it has a transport",
    "<function _SSLProtocolTransport.__del__": "asyncio closes the connection below TLS and leaves TLS as it is",
    "<function MemoryObject(Send|Receive)Stream.__del__": "the MCP SDK's streams of a session that was cancelled",
}
"""Patterns of what is closed by nobody but the garbage collector, in any later test, where real programs are ended.

Each has its reason. In STRICT_ROOMS none of them occurs, and each would fail a test.
"""

SHARED_PROCESSES: set[int] = set()
"""Processes that serve all tests of the run from the first one that needs them: nobody leaves them by mistake."""

SHARED_DESCRIPTORS: set[int] = set()
"""Descriptors of these processes, which stay open to the end of the run."""

KEPT_FILES = ("/memfd:isthmus-system-calls",)
"""Files that the program keeps until its end: the sandbox's filter of system calls."""

SHARED_FILES = ("socket:", r".*\.sqlite")
"""Patterns of what a server that is shared by tests opens in any of them: a journal anew for each of its threads."""

LINUX = sys.platform == "linux"
DESCRIPTORS = "/proc/self/fd" if LINUX else "/dev/fd"
THREADS = "/proc/self/task"


@dataclass(frozen=True, slots=True)
class Open:
    """The descriptors, child processes and threads of this process at one moment."""

    descriptors: Mapping[int, str]
    """The file behind each number: one that was closed and opened again has another file."""
    children: frozenset[int]
    threads: frozenset[threading.Thread]

    @classmethod
    def now(cls) -> "Open":
        """Return those of this moment. It takes a fifth of a millisecond."""
        return cls(dict(_descriptors()), frozenset(_children()), frozenset(threading.enumerate()))

    def since(self, before: "Open") -> "Open":
        """Return what was not there before."""
        opened = self.descriptors.items() - before.descriptors.items()
        return Open(
            {number: file for number, file in opened if number not in SHARED_DESCRIPTORS},
            self.children - before.children - SHARED_PROCESSES,
            self.threads - before.threads,
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a descriptor nor a process. (A pool's thread may outlive a test.)"""
        return not self.descriptors and not self.children


def left_open(before: Open, *, sockets_stay: bool = False) -> list[str]:
    """Return the names of what was opened since then and is neither closed nor just closing.

    ``sockets_stay``: connections may stay open, as the test shares a server and its client with others.
    """
    allowed = (*KEPT_FILES, *SHARED_FILES) if sockets_stay else KEPT_FILES
    found = _opened(before, allowed)
    if not found.is_empty:
        _let_close(before, found.threads, allowed)
        found = _opened(before, allowed)
    return [] if found.is_empty else sorted(_names(found))


def _opened(before: Open, allowed: tuple[str, ...]) -> Open:
    found = Open.now().since(before)
    kept = {number: file for number, file in found.descriptors.items() if not re.match("|".join(allowed), file)}
    return replace(found, descriptors=kept)


def _descriptors() -> Iterator[tuple[int, str]]:
    for name in os.listdir(DESCRIPTORS):  # noqa: PTH208 - a third of the time of Path
        # That of the list itself is closed by now.
        with contextlib.suppress(OSError):
            yield int(name), os.readlink(f"{DESCRIPTORS}/{name}") if LINUX else _file_of(int(name))  # noqa: PTH115


def _file_of(descriptor: int) -> str:
    status = os.fstat(descriptor)
    return f"file {status.st_ino} of device {status.st_dev}"


def _children() -> Iterator[int]:
    if not LINUX:
        yield from (child.pid for child in psutil.Process().children())
        return
    for thread in os.listdir(THREADS):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"{THREADS}/{thread}/children", encoding="ascii") as file:  # noqa: PTH123
            yield from map(int, file.read().split())


def _let_close(before: Open, threads: frozenset[threading.Thread], allowed: tuple[str, ...]) -> None:
    """Let event loops run that outlive the test, and threads end: nobody else closes anything any more."""
    deadline = time.monotonic() + SECONDS
    transports: list[Any] = _instances(asyncio.BaseTransport)
    for loop in {getattr(transport, "_loop", None) for transport in transports}:
        if loop is not None and not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(_turns(before, allowed, deadline))
    for thread in threads - {threading.current_thread()}:
        thread.join(max(0.0, deadline - time.monotonic()))


async def _turns(before: Open, allowed: tuple[str, ...], deadline: float) -> None:
    while not _opened(before, allowed).is_empty and time.monotonic() < deadline:
        await asyncio.sleep(0.01)  # delay: pause between two looks, below a deadline


def _names(found: Open) -> Iterator[str]:
    holders = dict(_holders())
    for descriptor, target in found.descriptors.items():
        yield f"descriptor {descriptor} ({target}) of {holders.get(descriptor, 'no object')}"
    for child in found.children:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(child)
            yield f"process {child} ({process.status()}): {process.cmdline()}"


def _holders() -> Iterator[tuple[int, str]]:
    """Return the objects that hold descriptors, those that say more of them last."""
    for thing in _instances(io.FileIO, socket.socket, select.epoll if LINUX else io.FileIO):
        with contextlib.suppress(ValueError, OSError):
            yield thing.fileno(), repr(thing)
    for transport in _instances(asyncio.BaseTransport):
        for kind in ("socket", "pipe"):
            with contextlib.suppress(ValueError, OSError, AttributeError):
                yield transport.get_extra_info(kind).fileno(), f"{transport!r} ({kind})"


def _instances(*kinds: type[Any]) -> list[Any]:
    """Return all objects of these types. It takes some milliseconds, of a test that left something."""
    return [thing for thing in gc.get_objects() if issubclass(type(thing), kinds)]
