"""Starts a command with a parent that all that it starts stays below, so that nothing outlives it unnoticed. Linux.

The parent is a program, see :mod:`isthmus.runtime.family_program`. Elsewhere a command is started as it is.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.runtime import family_program
from isthmus.runtime.processes import end_process_fully, start_process

WAIT_SECONDS = 2.0
"""Time in seconds for the parent to come to its end beyond what it needs by itself; then it is killed."""


class ProcessFamily:
    """A command and its parent. `leader` is the id of the command, and of its process group.

    `ended` and `survived` are what was left when the command had ended, by ids: known after :meth:`end_rest`.
    """

    def __init__(self, parent: Process, reports: asyncio.StreamReader, leader: int, grace_seconds: float) -> None:
        self.leader = leader
        self.ended: tuple[int, ...] = ()
        self.survived: tuple[int, ...] = ()
        self.exit_code: int | None = None
        """Exit code of the command; None while it runs, negative for the number of the signal that ended it."""
        self._parent = parent
        self._grace_seconds = grace_seconds
        self._has_ended = asyncio.Event()
        self._reading = asyncio.create_task(self._read(reports), name="isthmus-process-family")

    async def wait(self) -> int:
        """Wait for the end of the command, and return its exit code."""
        await self._has_ended.wait()
        return self.exit_code or 0

    async def end_rest(self, *, at_once: bool = False) -> None:
        """End all that the command has left, itself included, `at_once` or politely, and then the parent.

        If the caller is cancelled, what is left is killed at once, and the cancellation is raised.
        """
        if at_once:
            _hurry(self._parent)
        ending = asyncio.create_task(_end(self._parent, self._grace_seconds))
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.wait({ending})
            except asyncio.CancelledError as error:
                _hurry(self._parent)
                cancelled = error
        if cancelled is not None:
            raise cancelled
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.shield(self._reading)

    async def _read(self, reports: asyncio.StreamReader) -> None:
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
        if self.exit_code is None:  # the parent was killed, and nobody knows of the command
            self.exit_code = -signal.SIGKILL
        self._has_ended.set()


def can_start_families() -> bool:
    """Return whether this system keeps what a command starts below a program."""
    return sys.platform == "linux" and bool(sys.executable)


async def start_family(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    mark: tuple[str, str],
    output: int,
    grace_seconds: float,
) -> ProcessFamily:
    """Start a command as the leader of a session, without input; its output and errors go to a descriptor.

    Args:
        command: the program and its arguments.
        folder: the folder that it runs in.
        environment: its environment.
        mark: a further variable of the command's environment, which its parent does not have.
        output: the descriptor.
        grace_seconds: the time between SIGTERM and SIGKILL for what it leaves.

    Raises:
        OSError: it cannot be started.
    """
    read_end, write_end = os.pipe()
    try:
        parent = await start_process(
            *(sys.executable, "-I", "-S", family_program.__file__, str(write_end), str(grace_seconds)),
            *("=".join(mark), *command),
            stdin=PIPE,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=dict(environment),
            pass_fds=(write_end,),
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    try:
        reports = await _reader(read_end)
        word, *values = (await reports.readline()).decode().split() or ("failed",)
        if word != "started":
            number = int(values[0]) if values else 0
            raise OSError(number, os.strerror(number) if number else "its parent could not be started", command[0])
    except BaseException:
        _hurry(parent)
        await asyncio.shield(_end(parent, 0.0))
        raise
    return ProcessFamily(parent, reports, int(values[0]), grace_seconds)


async def _end(parent: Process, grace_seconds: float) -> None:
    """Have a parent end all below itself, and wait for its own end; kill it if it does not come."""
    if parent.stdin is not None:
        with suppress(OSError):
            parent.stdin.write(b"e")
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_seconds + family_program.KILL_SECONDS + WAIT_SECONDS):
            await parent.wait()
    _hurry(parent)  # closes the pipe, too
    if parent.returncode is None:
        await end_process_fully(parent)


def _hurry(parent: Process) -> None:
    """Have a parent kill at once what it ends."""
    if parent.stdin is not None:
        parent.stdin.close()


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol: Any = asyncio.StreamReaderProtocol(reader)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb"))
    return reader
