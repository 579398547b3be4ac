"""A program with few file descriptors, whose error output goes to a file."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def limited_program(folder: Path, *command: str) -> Generator[tuple["subprocess.Popen[str]", Path]]:
    """Start a program with at most 1,024 file descriptors, of which it has 256 at first."""
    limited = ("sh", "-c", 'ulimit -Sn 256; ulimit -Hn 1024; exec "$@"', "sh", *command)
    log = folder / "stderr.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            limited, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            text=True, encoding="utf-8",
        )  # fmt: skip
    with process:
        try:
            yield process, log
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
