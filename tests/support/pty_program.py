"""A program in a terminal of its own, as a user sees it: keys go in, the screen comes out.

A pseudo-terminal and pyte's screen behind it; a thread keeps reading, so that the program never waits for the test.
Not pexpect: it forks, and Python warns of a fork while other threads run.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pyte
import pyte.screens

from support.terminal_screen import TerminalScreen
from support.waiting import eventually

END_SECONDS = 5.0
TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Command that makes the terminal that of the session, which Ctrl-C comes from, and becomes the program."""


class Process(Protocol):
    """A process that was started, such as a ``Popen``."""

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it is known to have ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or minus the signal that ended it."""
        ...

    def poll(self) -> int | None:
        """Return the same if it has ended, otherwise None."""


class PtyProgram:
    """A program in a terminal, made by :func:`pty_program`. ``terminal`` is the outer end's file descriptor."""

    def __init__(self, process: Process, terminal: int, columns: int, rows: int) -> None:
        self.process = process
        self.terminal = terminal
        self._screen = TerminalScreen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self._received = bytearray()
        self._shown: str | None = None
        """Text of the screen, or None if it is out of date: pyte takes long to assemble its cells."""
        self._lock = threading.Lock()
        self._stopped, self._stop = os.pipe()
        self._is_hung_up = False
        self._reader = threading.Thread(target=self._read, name="pty-reader", daemon=True)
        self._reader.start()

    @property
    def screen(self) -> str:
        """The text on the screen, without blanks at the ends of lines and empty lines at its end."""
        with self._lock:
            if self._shown is None:
                self._shown = "\n".join(line.rstrip() for line in self._screen.display).rstrip()
            return self._shown

    @property
    def before_cursor(self) -> tuple[int, str]:
        """The row of the cursor, and the text before it."""
        with self._lock:
            cursor = self._screen.cursor
            row = self._screen.buffer[cursor.y]
            return cursor.y, "".join(row[column].data for column in range(cursor.x))

    def cells(self) -> list[list["pyte.screens.Char"]]:
        """The cells of the screen, row by row."""
        with self._lock:
            buffer = self._screen.buffer
            return [
                [buffer[row][column] for column in range(self._screen.columns)] for row in range(self._screen.lines)
            ]

    @property
    def received(self) -> bytes:
        """All bytes that the program has written so far."""
        with self._lock:
            return bytes(self._received)

    @property
    def title(self) -> str:
        """The window's title."""
        with self._lock:
            return self._screen.title

    def color_of(self, text: str) -> str:
        """Return the foreground colour of the first cell of `text`."""
        with self._lock:
            for row, line in enumerate(self._screen.display):
                if (column := line.find(text)) >= 0:
                    return str(self._screen.buffer[row][column].fg)
        raise AssertionError(f"{text!r} is not on the screen:\n{self.screen}")

    def screen_with(self, text: str) -> str:
        """Return the screen, which must contain this text: a condition to wait on.

        Raises:
            AssertionError: it does not; the message is the screen.
        """
        screen = self.screen
        assert text in screen, screen
        return screen

    def wait_for(self, pattern: str, seconds: float = 30) -> "PtyProgram":
        """Wait until the screen matches the regular expression (. does not match newlines)."""

        def condition() -> bool:
            screen = self.screen
            assert re.search(pattern, screen), screen
            return True

        eventually(condition, seconds, what=f"{pattern!r} on the screen")
        return self

    def wait_until_gone(self, pattern: str, seconds: float = 30) -> "PtyProgram":
        """Wait until the screen no longer matches."""
        eventually(lambda: not re.search(pattern, self.screen), seconds, what=f"{pattern!r} gone from the screen")
        return self

    def press(self, keys: str) -> "PtyProgram":
        """Send keys as a terminal does: Enter is "\\r", Escape "\\x1b"."""
        data = keys.encode()
        while data:
            data = data[os.write(self.terminal, data) :]
        return self

    def resize(self, columns: int, rows: int, *, wraps_anew: bool = False) -> "PtyProgram":
        """Resize the window; the program is notified as by a terminal. `wraps_anew`: rows that are too long go on."""
        with self._lock:
            (self._screen.reflow if wraps_anew else self._screen.resize)(rows, columns)
            self._shown = None
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        return self.signal(signal.SIGWINCH)

    def signal(self, number: signal.Signals) -> "PtyProgram":
        """Send a signal only to the program."""
        self.process.send_signal(number)
        return self

    def hang_up(self) -> None:
        """Close the terminal, as a terminal emulator does."""
        if not self._is_hung_up:
            self._is_hung_up = True
            os.close(self._stop)  # first: the terminal stays while the reader waits for more
            self._reader.join(END_SECONDS)
            os.close(self._stopped)
            os.close(self.terminal)

    def wait_for_exit(self, seconds: float = 30) -> int:
        """Return the exit code, or minus the signal that ended it; its whole output has been read then."""
        status = self.process.wait(seconds)
        self._reader.join(seconds)
        return status

    def end(self) -> None:
        """Kill the program and all processes that it started, and wait until it has ended."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
                break
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.hang_up()

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # EIO: no process has the other end open any more.
        with suppress(OSError):
            while self.terminal in select.select((self.terminal, self._stopped), (), ())[0]:
                if not (data := os.read(self.terminal, 65536)):
                    break
                with self._lock:
                    self._received += data
                    self._stream.feed(decoder.decode(data))
                    self._shown = None


@contextmanager
def pty_program(
    arguments: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str],
    columns: int = 120,
    rows: int = 50,
) -> Generator[PtyProgram]:
    """Start a program in a terminal and a session of its own; its whole process group is killed afterwards."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = [sys.executable, "-ISc", TAKE_TERMINAL, *arguments]
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
    except BaseException:
        os.close(terminal)
        raise
    finally:
        os.close(inner)
    program = PtyProgram(process, terminal, columns, rows)
    try:
        yield program
    finally:
        program.end()
