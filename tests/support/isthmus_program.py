"""Isthmus as a program of its own, as its users run it; most are copies of a process that has loaded it."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from support.loaded_program import shared_program
from support.pty_program import Process
from support.waiting import eventually

ISTHMUS = (sys.executable, "-m", "isthmus")
InProcess = Callable[..., "tuple[int, str, str]"]
"""A function that runs a command within the process of the test: its exit status, output and errors."""
TERMINAL = Path(__file__).with_name("terminal_job.py")
"""The program that runs a program as a job of a terminal of its own."""


def isthmus(
    *arguments: str, folder: Path, text: str | None = None, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; those of ``isthmus ide`` in a terminal, as a user does."""
    return shared_program().run(*arguments, folder=folder, text=text, environment=environment)


def started_isthmus(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Do the same with a new Python: other processes see the environment with which it was started."""
    in_terminal = (sys.executable, "-S", str(TERMINAL)) if arguments[:1] == ("ide",) else ()
    command = [*in_terminal, *ISTHMUS, *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False, timeout=100
    )


async def user(*arguments: str, folder: Path, text: str | None = None) -> dict[str, Any]:
    """Return the answer of ``isthmus ide`` in another terminal."""
    done = await asyncio.to_thread(isthmus, "ide", *arguments, "--json", folder=folder, text=text)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def would_choose(cli: str, folder: Path) -> int | None:
    """Return the port that `isthmus doctor` names for a CLI started in a folder."""
    found = json.loads(isthmus("doctor", "--json", folder=folder).stdout)
    return next((choice["port"] for choice in found["choices"] if choice["cli"] == cli and choice["connects"]), None)


def read_line(process: "TextProgram", seconds: float = 30) -> str:
    """Return the next line that a program prints; empty if it ended. Fails if no line comes in time."""
    assert process.stdout is not None
    line = b""
    # Byte by byte past Python's buffer, so that select sees all unread bytes.
    while not line.endswith(b"\n"):
        assert select.select([process.stdout], [], [], seconds)[0], f"nothing printed within {seconds:g} s"
        if not (byte := os.read(process.stdout.fileno(), 1)):
            break
        line += byte
    return line.decode().rstrip("\n")


class TextProgram(Process, Protocol):
    """A process that was started, with pipes for its output and errors."""

    @property
    def stdout(self) -> "IO[str] | None":
        """Stream of its output."""
        ...

    @property
    def stderr(self) -> "IO[str] | None":
        """Its errors."""
        ...


class CompanionProgram:
    """A running ``isthmus companion`` that has reported that it is ready."""

    def __init__(self, process: TextProgram) -> None:
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
        """The URL that agents attach to."""
        return f"http://127.0.0.1:{self.ready['port']}/mcp"

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait, and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def companion_program(
    folder: Path, *arguments: str, command: tuple[str, ...] = ("companion", "--editor", "headless")
) -> Generator[CompanionProgram]:
    """Start a headless companion in `folder`; end it afterwards in any case."""
    with shared_program().piped(*command, "--json", *arguments, folder=folder) as process:
        yield CompanionProgram(process)


@asynccontextmanager
async def bridge_program(folder: Path, *arguments: str) -> AsyncGenerator[CompanionProgram]:
    """Start `isthmus bridge` in `folder`. This event loop may serve the IDE: it runs on while the bridge starts."""
    started = companion_program(folder, *arguments, command=("bridge",))
    bridge = await asyncio.to_thread(started.__enter__)
    try:
        yield bridge
    finally:
        await asyncio.to_thread(started.__exit__, None, None, None)


def process_ends(pid: int) -> None:
    """Wait until a process that is not a child has ended (a zombie has)."""

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        return status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"

    eventually(ended, what=f"process {pid} has ended")
