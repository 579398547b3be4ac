"""A program in a terminal of its own, as a person has it before them: keys go in, the screen comes out.

A pseudo-terminal and pyte's screen behind it; a thread keeps reading, so that the program never waits for us. Not
pexpect: it forks, which Python warns of while other threads run.
"""

import codecs
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyte

ROWS, COLUMNS = 50, 120
END_SECONDS = 5.0


class _Screen(pyte.Screen):
    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        # The private form (CSI > 4 ; 2 m) is xterm's modifyOtherKeys; pyte takes it for a colour and fails.
        if not private:
            super().select_graphic_rendition(*attrs)


class PtyProgram:
    """Made by :func:`pty_program`."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._screen = _Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="pty-reader", daemon=True)
        self._reader.start()

    @property
    def screen(self) -> str:
        """What stands on the screen now, without blanks at the ends of lines."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def screen_with(self, text: str) -> str:
        """The screen, which must have this text on it: a condition to wait on.

        Raises:
            AssertionError: it has not; the message is the screen.
        """
        screen = self.screen
        assert text in screen, screen
        return screen

    def press(self, keys: str) -> None:
        """Send keys as a terminal does: Enter is "\\r", Escape "\\x1b"."""
        data = keys.encode()
        while data:
            data = data[os.write(self._terminal, data) :]

    def end(self) -> None:
        """Kill the program and all that it started, and wait until it is gone."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_SECONDS)
                break
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._reader.join(END_SECONDS)
        os.close(self._terminal)

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # EIO: nobody has the other end any more.
        with suppress(OSError):
            while data := os.read(self._terminal, 65536):
                with self._lock:
                    self._stream.feed(decoder.decode(data))


@contextmanager
def pty_program(
    arguments: Sequence[str | Path], *, folder: Path, environment: Mapping[str, str]
) -> Generator[PtyProgram]:
    """Start a program in a terminal and a session of its own; its whole process group is ended afterwards."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    try:
        process = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
    except BaseException:
        os.close(terminal)
        raise
    finally:
        os.close(inner)
    program = PtyProgram(process, terminal)
    try:
        yield program
    finally:
        program.end()
