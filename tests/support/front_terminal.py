"""A program in a real pseudo-terminal, and what a person would see on its screen (pyte draws it)."""

import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pexpect
import pyte

from support.waiting import eventually

TESTS = Path(__file__).resolve().parent.parent


class FrontTerminal:
    """`support.front_program` with these arguments in a terminal of `columns` x `rows`, as a context manager."""

    def __init__(
        self,
        *arguments: str,
        columns: int = 80,
        rows: int = 50,
        environment: Mapping[str, str] | None = None,
        program: str = "support.front_program",
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        self.received = b""
        self.child: pexpect.spawn[bytes] = pexpect.spawn(
            sys.executable,
            ["-m", program, *arguments],
            dimensions=(rows, columns),
            env={**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(TESTS), **(environment or {})},
            timeout=10,
        )
        self.child.delaybeforesend = None

    def __enter__(self) -> "FrontTerminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.close(force=True)

    @property
    def text(self) -> str:
        """The screen now, without trailing spaces and empty lines."""
        self._read()
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def title(self) -> str:
        """The window's title, which nothing here ever sets."""
        self._read()
        return self._screen.title

    def color_of(self, text: str) -> str:
        """The foreground colour of the first cell of `text`."""
        for row, line in enumerate(self._screen.display):
            if (column := line.find(text)) >= 0:
                return str(self._screen.buffer[row][column].fg)
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text}")

    def wait_for(self, pattern: str, seconds: float = 10) -> "FrontTerminal":
        """Wait until the screen matches the regular expression (. does not match newlines)."""
        eventually(lambda: re.search(pattern, self.text), seconds, what=f"{pattern!r} on the screen")
        return self

    def wait_until_gone(self, pattern: str, seconds: float = 10) -> "FrontTerminal":
        """Wait until the screen does not match any more."""
        eventually(lambda: not re.search(pattern, self.text), seconds, what=f"{pattern!r} gone from the screen")
        return self

    def type(self, keys: str) -> "FrontTerminal":
        """Press these keys."""
        self.child.send(keys)
        return self

    def signal(self, number: signal.Signals) -> "FrontTerminal":
        """Send a signal to the program alone."""
        self.child.kill(number)
        return self

    def wait_for_exit(self, seconds: float = 10) -> int:
        """The exit code, or minus the signal that ended it."""

        def ended() -> bool:
            self._read()
            return not self.child.isalive()

        eventually(ended, seconds, what="the end of the program")
        if self.child.signalstatus is not None:
            return -self.child.signalstatus
        return self.child.exitstatus if self.child.exitstatus is not None else 0

    def _read(self) -> None:
        while True:
            try:
                data = self.child.read_nonblocking(65536, timeout=0)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return
            self.received += data
            self._stream.feed(data)
