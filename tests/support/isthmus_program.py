"""Isthmus as its users run it: as a program of its own."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from support.waiting import eventually

ISTHMUS = (sys.executable, "-m", "isthmus")
InProcess = Callable[..., "tuple[int, str, str]"]
"""Runs a command within the process of the test: its exit status, its output and its errors."""
TERMINAL = Path(__file__).with_name("terminal_job.py")
"""Runs a program as a job of a terminal of its own."""


def isthmus(*arguments: str, folder: Path, text: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; those of ``isthmus ide`` as a user does, in a terminal."""
    in_terminal = (sys.executable, "-S", str(TERMINAL)) if arguments[:1] == ("ide",) else ()
    return subprocess.run(
        [*in_terminal, *ISTHMUS, *arguments],
        cwd=folder, input=text, capture_output=True, text=True, encoding="utf-8", check=False, timeout=100,
    )  # fmt: skip


async def user(*arguments: str, folder: Path, text: str | None = None) -> dict[str, Any]:
    """What ``isthmus ide`` answers in another terminal."""
    done = await asyncio.to_thread(isthmus, "ide", *arguments, "--json", folder=folder, text=text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def would_choose(cli: str, folder: Path) -> int | None:
    """The port to which `isthmus doctor` says that a CLI would connect that is started in a folder."""
    found = json.loads(isthmus("doctor", "--json", folder=folder).stdout)
    return next((choice["port"] for choice in found["choices"] if choice["cli"] == cli and choice["connects"]), None)


def read_line(process: "subprocess.Popen[str]", seconds: float = 30) -> str:
    """The next line that a program prints; empty when it ended. A failure when nothing comes in time."""
    assert process.stdout is not None
    line = b""
    # Byte by byte past Python's buffer, so that select sees whatever has not been read.
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], seconds)[0], f"nothing printed within {seconds:g} s"
        if not (byte := os.read(process.stdout.fileno(), 1)):
            break
        line += byte
    return line.decode().rstrip("\n")


class CompanionProgram:
    """``isthmus companion`` that has said that it is ready."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        line = read_line(process)
        if not line:
            assert process.stderr is not None
            raise AssertionError(f"the companion ended with {process.wait(30)}: {process.stderr.read()}")
        self.ready: dict[str, Any] = json.loads(line)

    @property
    def discovery_file(self) -> Path:
        """The path of its discovery file."""
        return Path(self.ready["discovery_file"])

    @property
    def discovered(self) -> dict[str, Any]:
        """The content of the discovery file."""
        return json.loads(self.discovery_file.read_text(encoding="utf-8"))

    @property
    def url(self) -> str:
        """Where agents attach."""
        return f"http://127.0.0.1:{self.ready['port']}/mcp"

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def companion_program(
    folder: Path, *arguments: str, command: tuple[str, ...] = ("companion", "--editor", "headless")
) -> Generator[CompanionProgram]:
    """Start a headless companion in `folder`; it is ended afterwards, whatever happened."""
    process = subprocess.Popen(
        [*ISTHMUS, *command, "--json", *arguments],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
    )  # fmt: skip
    with process:
        try:
            yield CompanionProgram(process)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()


@asynccontextmanager
async def bridge_program(folder: Path, *arguments: str) -> AsyncGenerator[CompanionProgram]:
    """Start `isthmus bridge` in `folder`. This event loop may serve the IDE: it goes on while the bridge starts."""
    started = companion_program(folder, *arguments, command=("bridge",))
    bridge = await asyncio.to_thread(started.__enter__)
    try:
        yield bridge
    finally:
        await asyncio.to_thread(started.__exit__, None, None, None)


def process_ends(pid: int) -> None:
    """Wait until a process that is not ours to wait for has ended (a zombie has)."""

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"

    eventually(ended, what=f"process {pid} has ended")
