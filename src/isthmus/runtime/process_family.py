"""Starts a command with a parent that all that it starts stays below, so that nothing outlives it unnoticed. Linux.

Parents are made by a program, see :mod:`isthmus.runtime.family_program`, which is started with the first command.
Elsewhere a command is started as it is.
"""

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.runtime import family_program
from isthmus.runtime.brief_work import briefly

WAIT_SECONDS = 2.0
"""Time in seconds for a parent to come to its end beyond what it needs by itself; then it is killed."""
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")
"""Variables that Python needs to start."""


class NoParent(Exception):
    """No parent can be made for a command."""


class ProcessFamily:
    """A command and its parent. `leader` is the id of the command, and of its process group.

    `ended` and `survived` are what was left when the command had ended, by ids: known after :meth:`end_rest`.
    """

    def __init__(
        self, reports: "_Reports", leader: int, parent: int, control: "_Control", grace_seconds: float
    ) -> None:
        self.leader = leader
        self.ended: tuple[int, ...] = ()
        self.survived: tuple[int, ...] = ()
        self.exit_code: int | None = None
        """Exit code of the command; None while it runs, negative for the number of the signal that ended it."""
        self._parent = parent
        self._control = control
        self._grace_seconds = grace_seconds
        self._has_ended = asyncio.Event()
        self._reading = asyncio.create_task(self._read(reports), name="isthmus-process-family")

    async def wait(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        await self._has_ended.wait()
        return self.exit_code or 0

    async def end_rest(self) -> None:
        """End all that the command has left, itself included, and then the parent.

        If the caller is cancelled, what is left is killed at once, and the cancellation is raised.
        """
        ending = asyncio.create_task(self._end())
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.wait({ending})
            except asyncio.CancelledError as error:
                self._control.close()
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def _end(self) -> None:
        self._control.ask()
        seconds = self._grace_seconds + family_program.KILL_SECONDS + WAIT_SECONDS
        await asyncio.wait({self._reading}, timeout=seconds)
        self._control.close()
        if not self._reading.done():
            with suppress(ProcessLookupError):
                os.kill(self._parent, signal.SIGKILL)
            await asyncio.wait({self._reading}, timeout=WAIT_SECONDS)

    async def _read(self, reports: "_Reports") -> None:
        """Read the reports, which end with the parent."""
        with reports:
            await self._read_lines(reports.lines)
        if self.exit_code is None:  # the parent was killed, and nobody knows of the command
            self.exit_code = -signal.SIGKILL
        self._has_ended.set()

    async def _read_lines(self, reports: asyncio.StreamReader) -> None:
        while line := await reports.readline():
            word, *values = line.decode().split()
            numbers = tuple(map(int, values))
            if word == "ended":
                self.exit_code = os.waitstatus_to_exitcode(numbers[0])
                self._has_ended.set()
            elif word == "left":
                self.ended = numbers
            elif word == "survived":
                self.survived = numbers


class _Control:
    """The input of a parent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def ask(self) -> None:
        """Have the parent end what is left, politely."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.write(self._descriptor, b"e")

    def close(self) -> None:
        """Have the parent kill what is left."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class _Reports:
    """The reports of a parent, as a context that closes them."""

    def __init__(self, lines: asyncio.StreamReader, transport: asyncio.BaseTransport) -> None:
        self.lines = lines
        self._transport = transport

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Close the pipe."""
        self._transport.close()


class _ParentMaker:
    """The running program that makes parents."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", family_program.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def send(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Have a parent made. Blocking.

        Raises:
            OSError: the program has ended.
        """
        with self._lock:
            size = len(request).to_bytes(family_program.HEAD_BYTES, "big")
            socket.send_fds(self._channel, [size], descriptors)
            self._channel.sendall(request)

    def close(self) -> None:
        """Let the program end."""
        self._channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(WAIT_SECONDS)


_makers: dict[int, _ParentMaker] = {}
"""The program of this process, by its id: a fork has none."""
_makers_lock = threading.Lock()


def _maker(other_than: _ParentMaker | None = None) -> _ParentMaker:
    """Return the running program; a new one in place of `other_than`, which has ended. Blocking."""
    with _makers_lock:
        known = _makers.get(os.getpid())
        if known is not None and known is not other_than:
            return known
        if known is not None:
            known.close()
        _makers.clear()
        made = _makers[os.getpid()] = _ParentMaker()
        return made


@atexit.register
def close() -> None:
    """Let the program that makes parents end, if it runs. Blocking."""
    if (known := _makers.pop(os.getpid(), None)) is not None:
        known.close()


def can_start_families() -> bool:
    """Return whether this system keeps what a command starts below a program."""
    return sys.platform == "linux" and bool(sys.executable)


def prepare() -> None:
    """Start the program that the first command would start, and that ends with this process. Blocking."""
    _maker()


async def start_family(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], output: int, grace_seconds: float
) -> ProcessFamily:
    """Start a command as the leader of a session, without input; its output and errors go to a descriptor.

    Args:
        command: the program and its arguments.
        folder: the folder that it runs in.
        environment: its environment.
        output: the descriptor.
        grace_seconds: the time between SIGTERM and SIGKILL for what it leaves.

    Raises:
        NoParent: nothing can be its parent.
        OSError: it cannot be started.
    """
    variables = (f"{name}={value}" for name, value in environment.items())
    texts = (str(folder), str(grace_seconds), str(len(command)), *command, *variables)
    if any("\0" in text for text in texts):
        raise ValueError("expected a command and an environment without NUL characters")
    request = b"".join(os.fsencode(text) + b"\0" for text in texts)
    ended: _ParentMaker | None = None
    for _ in range(2):
        try:
            maker = await briefly(_maker, ended)
        except OSError as error:
            raise NoParent(f"{sys.executable} cannot be started: {error}") from error
        try:
            return await _start(maker, request, output, command[0], grace_seconds)
        except (ConnectionError, EOFError):
            ended = maker  # somebody has ended it since
    raise NoParent("the program that makes parents of commands ends at once")


async def _start(maker: _ParentMaker, request: bytes, output: int, program: str, grace_seconds: float) -> ProcessFamily:
    """Have a parent made that starts the command.

    Raises:
        EOFError: the program that makes parents has ended, and the command was not started.
        OSError: the same, or the command cannot be started.
    """
    heard, control_end = os.pipe()
    control = _Control(control_end)
    read_end, report = os.pipe()
    try:
        await briefly(maker.send, request, (heard, output, report))
    except BaseException:
        control.close()
        os.close(read_end)
        raise
    finally:
        os.close(heard)
        os.close(report)
    reports = await _reader(read_end)
    try:
        word, *values = (await reports.lines.readline()).decode().split() or ("",)
        if not word:
            raise EOFError
        if word != "started":
            number = int(values[0])
            raise OSError(number, os.strerror(number), program)
    except BaseException:
        control.close()
        with reports:
            raise
    return ProcessFamily(reports, int(values[0]), int(values[1]), control, grace_seconds)


async def _reader(descriptor: int) -> _Reports:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol: Any = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb"))
    return _Reports(reader, transport)
