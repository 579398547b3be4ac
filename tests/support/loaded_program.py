"""Isthmus as a copy of a process that has loaded it: to begin it takes a third of the processor time, or less.

The copy is a process of its own, in a session, a folder and an environment of its own, and runs the same ``main``.
Python's own start and end, and the import of modules, are not part of it; tests of these start
``isthmus_program.ISTHMUS``.
"""

import atexit
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TextIO

from support import leaks
from support.loading_program import LENGTH_BYTES
from support.pty_program import PtyProgram

LOADING = Path(__file__).with_name("loading_program.py")
ISTHMUS = "isthmus.__main__"
RUN_SECONDS = 100.0
PIPED_END_SECONDS = 30.0
START_SECONDS = 60.0
END_SECONDS = 10.0


class LoadedProcess:
    """A process of the program, with what :class:`PtyProgram` uses of a ``Popen``. Owns the pipe with its end."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._ended: int | None = None
        self.pid = self._number(b"began", START_SECONDS)

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and the pipe does not say so yet
                os.kill(self.pid, sig)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or minus the signal that ended it.

        Raises:
            TimeoutExpired: it still runs after `timeout` seconds.
        """
        if self._ended is None:
            self._ended = self._number(b"ended", START_SECONDS if timeout is None else timeout)
        return self._ended

    def poll(self) -> int | None:
        """Return what :meth:`wait` does, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def fileno(self) -> int:
        """Return the pipe, which can be read when the process has ended."""
        return self._pipe

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._pipe)

    def _number(self, word: bytes, seconds: float) -> int:
        """Return the number of the next line, which begins with a word."""
        line, deadline = b"", time.monotonic() + seconds
        ready = select.poll()  # select() takes no number above 1,023, which long runs reach
        ready.register(self._pipe, select.POLLIN)
        while not line.endswith(b"\n"):
            if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise subprocess.TimeoutExpired(str(LOADING), seconds)
            if not (byte := os.read(self._pipe, 1)):
                raise RuntimeError(f"{LOADING} has ended; see its standard error")
            line += byte
        found, number = line.split()
        assert found == word, f"expected {word!r} and a number, not {line!r}"
        return int(number)


@dataclass(frozen=True, slots=True)
class PipedProgram:
    """A running copy, with what tests use of a ``Popen``: its output and errors are text."""

    process: LoadedProcess
    stdout: TextIO
    stderr: TextIO

    @property
    def pid(self) -> int:
        """Its id."""
        return self.process.pid

    def send_signal(self, sig: int) -> None:
        """Send a signal to the program, if it runs."""
        self.process.send_signal(sig)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, as :class:`LoadedProcess` does."""
        return self.process.wait(timeout)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self.process.poll()


class LoadedProgram:
    """A process that has loaded the program, and starts copies of itself. Made by :func:`loaded_program`."""

    def __init__(self, requests: socket.socket, pid: int) -> None:
        self.pid = pid
        self._requests = requests
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """Return the descriptor that is open as long as the process runs."""
        return self._requests.fileno()

    def start(
        self,
        *arguments: str,
        streams: tuple[int, ...],
        folder: Path,
        environment: Mapping[str, str],
        program: str = ISTHMUS,
        is_job: bool = False,
    ) -> LoadedProcess:
        """Start a copy that runs a program, a module with a ``main`` or a script; the caller closes what is returned.

        `streams` are copied: a new terminal, or standard input, output and errors. With `is_job` it is a foreground
        job of another new terminal, below the terminal's shell, which is the process that is returned.
        """
        request = {
            "program": program,
            "arguments": arguments,
            "folder": str(folder),
            "environment": dict(environment),
            "umask": _umask(),
            "is_job": is_job,
        }
        body = json.dumps(request).encode()
        ended, writer = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._requests, [len(body).to_bytes(LENGTH_BYTES, "big")], [writer, *streams])
                self._requests.sendall(body)
        finally:
            os.close(writer)
        try:
            return LoadedProcess(ended)
        except BaseException:
            os.close(ended)
            raise

    @contextmanager
    def terminal(
        self,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str],
        columns: int = 120,
        rows: int = 50,
        program: str = ISTHMUS,
    ) -> Generator[PtyProgram]:
        """Start the program in a terminal and a session of its own; its process group is killed afterwards."""
        terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        try:
            process = self.start(*arguments, streams=(inner,), folder=folder, environment=environment, program=program)
        except BaseException:
            os.close(terminal)
            raise
        finally:
            os.close(inner)
        with closing(process):
            shown = PtyProgram(process, terminal, columns, rows)
            try:
                yield shown
            finally:
                shown.end()

    def run(
        self, *arguments: str, folder: Path, text: str | None = None, environment: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end; those of ``isthmus ide`` in a terminal, as a user does.

        `environment` is by default that of the test.

        Raises:
            TimeoutExpired: it still runs after RUN_SECONDS; it has been killed.
        """
        with ExitStack() as files, ThreadPoolExecutor(3) as threads:
            pipes = [os.pipe() for _ in range(3)]
            given, *ours = (
                files.enter_context(os.fdopen(pipes[0][1], "w", encoding="utf-8")),
                *(files.enter_context(os.fdopen(pipe[0], encoding="utf-8")) for pipe in pipes[1:]),
            )
            streams = (pipes[0][0], pipes[1][1], pipes[2][1])
            try:
                process = self.start(
                    *arguments,
                    streams=streams,
                    folder=folder,
                    environment=os.environ if environment is None else environment,
                    is_job=arguments[:1] == ("ide",),
                )
            finally:
                for stream in streams:
                    os.close(stream)
            files.enter_context(closing(process))
            threads.submit(_give, given, text or "")
            read = [threads.submit(file.read) for file in ours]
            try:
                status = process.wait(RUN_SECONDS)
            except BaseException:
                process.send_signal(signal.SIGKILL)
                raise
            output, errors = (found.result(RUN_SECONDS) for found in read)
        return subprocess.CompletedProcess(arguments, status, output, errors)

    @contextmanager
    def piped(self, *arguments: str, folder: Path) -> Generator[PipedProgram]:
        """Start a program that is ended afterwards in any case; it has no input, and the environment of the test."""
        with ExitStack() as files:
            pipes = [os.pipe() for _ in range(2)]
            ours = [files.enter_context(os.fdopen(pipe[0], encoding="utf-8")) for pipe in pipes]
            streams = (os.open(os.devnull, os.O_RDONLY), pipes[0][1], pipes[1][1])
            try:
                process = self.start(*arguments, streams=streams, folder=folder, environment=os.environ)
            finally:
                for stream in streams:
                    os.close(stream)
            files.enter_context(closing(process))
            try:
                yield PipedProgram(process, *ours)
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(PIPED_END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)


def _umask() -> int:
    """Return the mask of this process, which a program that it starts has, too."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _give(file: TextIO, text: str) -> None:
    """Write the whole standard input of a program, which may end before it has read it."""
    with suppress(BrokenPipeError), file:
        file.write(text)


@contextmanager
def loaded_program(python: str = sys.executable, *modules: str, path: str = "") -> Generator[LoadedProgram]:
    """Start the process that loads the program, or other `modules`; end it afterwards. `path` is its PYTHONPATH."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [python, "-P", str(LOADING), str(theirs.fileno()), *modules],
            pass_fds=(theirs.fileno(),),
            # The rest is that of each program.
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONPATH": path},
            start_new_session=True,
        )
        with process:
            theirs.close()
            try:
                yield LoadedProgram(ours, process.pid)
            finally:
                ours.close()
                try:
                    process.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


@cache
def shared_program(python: str = sys.executable, *modules: str, path: str = "") -> LoadedProgram:
    """Return the process whose copies are the programs of all tests in this process. The first use starts it.

    There is one for each combination of the arguments of :func:`loaded_program`.
    """
    stack = ExitStack()
    program = stack.enter_context(loaded_program(python, *modules, path=path))
    atexit.register(stack.close)
    leaks.SHARED_PROCESSES.add(program.pid)
    leaks.SHARED_DESCRIPTORS.add(program.fileno())
    return program
