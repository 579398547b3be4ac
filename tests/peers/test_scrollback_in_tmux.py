"""What stays in the scrollback of tmux, a real terminal, while its window changes its size."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.programs import require
from support.waiting import eventually

TESTS = Path(__file__).resolve().parent.parent
LINES = 10_000
SIZES = ((60, 24), (80, 24), (80, 12), (100, 30), (80, 24))
"""Sizes of the window, in turn."""


class Tmux:
    """A tmux server of its own with one window of 80 x 24, which runs the front on a scripted agent."""

    def __init__(self, folder: Path, scenario: str) -> None:
        self._command = [str(require("tmux")), "-S", str(folder / "tmux"), "-f", str(folder / "tmux.conf")]
        (folder / "tmux.conf").write_text("set -g history-limit 50000\n", "utf-8")
        self._log = folder / "output"
        program = [sys.executable, "-m", "support.front_program", scenario]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        subprocess.run(
            [*self._command, "new-session", "-d", "-x", "80", "-y", "24", *program], env=environment, check=True
        )
        self("pipe-pane", f"cat > {self._log}")

    def __call__(self, *arguments: str) -> str:
        return subprocess.run([*self._command, *arguments], check=True, capture_output=True, encoding="utf-8").stdout

    @property
    def screen(self) -> str:
        return self("capture-pane", "-p")

    @property
    def scrollback(self) -> str:
        """All that can be read by scrolling, with wrapped lines joined."""
        return self("capture-pane", "-p", "-J", "-S", "-")

    @property
    def output(self) -> bytes:
        """All that the program has written."""
        return self._log.read_bytes()

    def wait_for(self, text: str) -> None:
        def is_there() -> bool:
            screen = self.screen
            assert text in screen, screen
            return True

        eventually(is_there, what=text)

    def next(self) -> None:
        """Open the next gate of the script."""
        os.kill(int(self("display-message", "-p", "#{pane_pid}")), signal.SIGUSR2)


@contextmanager
def tmux(folder: Path, scenario: str) -> Generator[Tmux]:
    terminal = Tmux(folder, scenario)
    try:
        yield terminal
    finally:
        terminal("kill-server")


@pytest.mark.slow
def test_each_line_is_in_the_scrollback_once_after_twenty_resizes(tmp_path: Path) -> None:
    with tmux(tmp_path, "lines") as terminal:
        terminal.wait_for("\u203a")
        terminal("send-keys", "write", "Enter")
        terminal.wait_for("line 00499")
        # The draft is a live line: it is redrawn all the time, below text that must stay.
        terminal("send-keys", "draft")
        terminal.wait_for("draft_")
        for step in range(20):
            width, height = SIZES[step % len(SIZES)]
            terminal("resize-window", "-x", str(width), "-y", str(height))
            if step < 19:
                terminal.next()
                terminal.wait_for(f"line {500 * (step + 2) - 1:05}")
        terminal.wait_for("\u203a draft")
        for width in (60, 90, 80):
            terminal("resize-window", "-x", str(width), "-y", "24")
        terminal("send-keys", " ends here")
        terminal.wait_for("\u203a draft ends here")
        lines = terminal.scrollback.splitlines()
        shown = [line.strip() for line in lines if line.startswith("line ")]
        assert shown == [f"line {number:05} of ten thousand" for number in range(LINES)]
        assert [line for line in lines if "draft" in line] == ["\u203a draft ends here"]
        assert b"\x1b[2J" not in terminal.output
        assert b"\x1b[3J" not in terminal.output
