"""Isthmus in a terminal, begun by a copy of a process that has loaded it: that takes a third of the processor time.

The copy is a process of its own, in a terminal, a folder and an environment of its own, and runs the same ``main``.
Python's own start and the import of modules are not part of it; tests of these start ``isthmus_program.ISTHMUS``.
"""

import fcntl
import json
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.loading_program import LENGTH_BYTES
from support.pty_program import PtyProgram

LOADING = Path(__file__).with_name("loading_program.py")
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
        """Return the same if it has ended, otherwise None."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._pipe)

    def _number(self, word: bytes, seconds: float) -> int:
        """Return the number of the next line, which begins with a word."""
        line, deadline = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            if not select.select([self._pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise subprocess.TimeoutExpired(str(LOADING), seconds)
            if not (byte := os.read(self._pipe, 1)):
                raise RuntimeError(f"{LOADING} has ended; see its standard error")
            line += byte
        found, number = line.split()
        assert found == word, f"expected {word!r} and a number, not {line!r}"
        return int(number)


class LoadedProgram:
    """A process that has loaded the program, and starts copies of itself. Made by :func:`loaded_program`."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    @contextmanager
    def terminal(
        self, *arguments: str, folder: Path, environment: Mapping[str, str], columns: int = 120, rows: int = 50
    ) -> Generator[PtyProgram]:
        """Start the program in a terminal and a session of its own; its process group is killed afterwards."""
        request = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        body = json.dumps(request).encode()
        terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        ended, writer = os.pipe()
        try:
            socket.send_fds(self._requests, [len(body).to_bytes(LENGTH_BYTES, "big")], [inner, writer])
            self._requests.sendall(body)
        finally:
            os.close(inner)
            os.close(writer)
        try:
            process = LoadedProcess(ended)
        except BaseException:
            os.close(terminal)
            os.close(ended)
            raise
        program = PtyProgram(process, terminal, columns, rows)
        try:
            yield program
        finally:
            program.end()
            process.close()


@contextmanager
def loaded_program() -> Generator[LoadedProgram]:
    """Start the process that loads the program; end it afterwards."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(LOADING), str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        with process:
            theirs.close()
            try:
                yield LoadedProgram(ours)
            finally:
                ours.close()
                try:
                    process.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
