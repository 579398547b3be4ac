"""Effects of command lines in a real bash: a sandbox whose PATH has only marker programs, which record their calls.

Bubblewrap makes the sandbox: no network, a read-only system, a scratch folder in memory. The program in shell_judge.c
runs the lines and looks at the folder after each.
"""

import os
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from support.programs import bubblewrap, require

MARKERS = (
    *("cat", "find", "git", "grep", "head", "ls", "npm", "pwn", "rm", "run.sh"),
    *("sed", "sort", "tar", "touch", "uniq", "wc", "notfound"),
)
"""Names of markers. bash calls `notfound` for any other name."""
PORT = 7777
"""Port on which a connection is noticed."""
SURROUNDINGS: Mapping[str, str] = {
    "PATH": "/judge/bin",
    "HOME": "/scratch",
    "LC_ALL": "C.UTF-8",
    "BASH_FUNC_command_not_found_handle%%": '() { /judge/bin/notfound "$@"; }',
    # Values for expansions in a line: an option, an operand that is evaluated, both, and a name for a connection.
    "x": "-delete",
    "a": "a[$(pwn)]",
    "b": "-v a[$(pwn)]",
    "f": f"/dev/tcp/127.0.0.1/{PORT}",
}
_BATCH_BYTES = 30_000
"""Bytes of lines under way: less than a pipe holds, so that neither side waits for the other to read."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program that a line started: the path that bash used, and its arguments."""

    path: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Effects of a line. `changed`: files of the scratch folder; `is_over`: the line was ended at its time limit."""

    runs: tuple[Run, ...]
    changed: tuple[str, ...]
    has_connected: bool
    is_over: bool


class ShellJudge:
    """The sandbox with its program, as a context manager. `folder` is for the compiled program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        programs = self._folder / "bin"
        programs.mkdir()
        judge = programs / "judge"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([require("cc"), "-O1", "-static", "-o", judge, source], check=True, timeout=100)
        for name in MARKERS:
            os.link(judge, programs / name)
        bash = require("bash").resolve()
        self._process = subprocess.Popen(
            [
                bubblewrap() / "bwrap",
                *("--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--tmpfs", "/"),
                *_system(),
                *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/judge", "--tmpfs", "/scratch"),
                *("--ro-bind", programs, "/judge/bin", "--ro-bind", bash, "/judge/bash"),
                *(part for name, value in SURROUNDINGS.items() for part in ("--setenv", name, value)),
                *("/judge/bin/judge", "/judge/bash"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.communicate(timeout=60)

    def run(self, lines: Sequence[str]) -> list[Report]:
        """Run lines as `bash -c LINE`, one after the other."""
        return [report for batch in _batches(lines) for report in self._run(batch)]

    def _run(self, lines: Sequence[bytes]) -> Iterator[Report]:
        assert self._process is not None
        writing, reading = self._process.stdin, self._process.stdout
        assert writing is not None
        assert reading is not None
        writing.write(b"".join(struct.pack("=I", len(line)) + line for line in lines))
        writing.flush()
        for line in lines:
            try:
                (size,) = struct.unpack("=I", _exactly(reading, 4))
                yield _report(_exactly(reading, size))
            except EOFError:
                raise AssertionError(f"this line, or one before it, ended the program around it: {line!r}") from None


def _system() -> Iterator[str]:
    """Yield the parts of the system that bash needs, as arguments of bubblewrap."""
    for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/") / name
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _batches(lines: Sequence[str]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        encoded = line.encode()
        if batch and size + len(encoded) > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(encoded)
        size += len(encoded) + 4
    if batch:
        yield batch


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _report(data: bytes) -> Report:
    is_over, has_connected, size = struct.unpack_from("=BBI", data)
    runs: list[Run] = []
    log, changed = data[6 : 6 + size], data[6 + size :]
    while len(log) >= 4:
        (length,) = struct.unpack_from("=I", log)
        if length > len(log):
            # More calls were recorded than a report holds.
            break
        path, *words = (word.decode(errors="surrogateescape") for word in log[4:length].split(b"\0")[:-1])
        runs.append(Run(path, tuple(words)))
        log = log[length:]
    names = tuple(changed.decode(errors="surrogateescape").splitlines())
    return Report(tuple(runs), names, bool(has_connected), bool(is_over))
