"""Programs under measurement: run to their end, or kept running as servers that report their own figures.

CPU is user plus system time, for a program that ends its whole process tree's (wait4). Memory is the largest sample of
the tree's sum while it ran, and at least what the kernel reports for its largest process.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 0.03
DEADLINE_SECONDS = 120.0
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources used by a program: CPU seconds, MiB, and wall-clock seconds."""

    cpu: float
    memory: float
    wall: float
    output: str


def program(name: str) -> str:
    """Return the path of a program in this virtual environment."""
    return str(Path(sys.executable).with_name(name))


def python_program(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module as a program."""
    return [sys.executable, "-m", module, *arguments]


@contextmanager
def clean_home() -> Generator[dict[str, str]]:
    """Yield an environment with its own home and temporary folder, without the user's keys."""
    with tempfile.TemporaryDirectory(prefix="isthmus-bench-") as folder:
        home = Path(folder)
        for name in ("home", "tmp", "work"):
            (home / name).mkdir()
        yield {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "HOME": str(home / "home"),
            "TMPDIR": str(home / "tmp"),
            "XDG_DATA_HOME": str(home / "home" / ".local" / "share"),
            "XDG_RUNTIME_DIR": str(home / "tmp"),
            "PWD": str(home / "work"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        }


def measure(command: Sequence[str], environment: Mapping[str, str], seconds: float = DEADLINE_SECONDS) -> Usage:
    """Run a program to its end.

    Raises:
        RuntimeError: it did not end with status 0 within so many seconds; its output is in the message.
    """
    with tempfile.TemporaryFile() as captured:
        begin = time.monotonic()
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=environment["PWD"],
            stdin=subprocess.DEVNULL,
            stdout=captured,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        watch = _MemoryWatch(process.pid)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - begin
        finally:
            timer.cancel()
            watch.end()
        process.returncode = os.waitstatus_to_exitcode(status)
        captured.seek(0)
        output = captured.read().decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}: {output[-2000:]}")
    largest = usage.ru_maxrss / (1024 if sys.platform != "darwin" else MIB)
    return Usage(usage.ru_utime + usage.ru_stime, max(watch.peak, largest), wall, output)


class _MemoryWatch:
    """Watch over the largest resident memory of a process tree, sampled by a thread."""

    def __init__(self, pid: int) -> None:
        self.peak = 0.0
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, tree_memory(self._pid))


def tree_memory(pid: int) -> float:
    """Return the resident memory in MiB of a process and its descendants; 0 if it is gone."""
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0.0
    total = 0
    for process in tree:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total / MIB


def tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its descendants, also of those that have ended and were waited for."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


@dataclass(slots=True)
class ServerProgram:
    """A server that prints one line when it is ready."""

    process: "subprocess.Popen[str]"
    first_line: str
    ready_seconds: float
    """Time in seconds from its start to its line."""
    ready_cpu: float
    """CPU seconds until its line, in steps of 0.01 s."""

    def ask(self) -> dict[str, float]:
        """Return a server's figures (:mod:`bench.programs`): ``cpu`` (s), ``memory`` (MiB), ``tasks`` (of asyncio)."""
        _pipe(self.process.stdin).write("?\n")
        _pipe(self.process.stdin).flush()
        found: dict[str, Any] = json.loads(_pipe(self.process.stdout).readline())
        return found

    def cpu(self) -> float:
        """Return the CPU seconds used so far by a server of :mod:`bench.programs`."""
        return self.ask()["cpu"]

    def process_cpu(self) -> float:
        """Return the CPU seconds used so far by any server, in steps of 0.01 s."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def memory(self) -> float:
        """Return the current resident memory in MiB."""
        return psutil.Process(self.process.pid).memory_info().rss / MIB


@contextmanager
def server(command: Sequence[str], environment: Mapping[str, str]) -> Generator[ServerProgram]:
    """Run a server and end it afterwards."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=environment["PWD"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        )
        try:
            first_line = _pipe(process.stdout).readline()
            seconds = time.monotonic() - begin
            if not first_line:
                process.wait(10)
                errors.seek(0)
                output = errors.read().decode(errors="replace")
                raise RuntimeError(f"{' '.join(command)} did not start: {output[-2000:]}")
            times = psutil.Process(process.pid).cpu_times()
            yield ServerProgram(process, first_line.strip(), seconds, times.user + times.system)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _pipe(process.stdin).close()
            _pipe(process.stdout).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
