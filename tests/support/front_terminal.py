"""The interactive front on a scripted agent in a terminal of its own."""

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.pty_program import PtyProgram, pty_program

TESTS = Path(__file__).resolve().parent.parent


@contextmanager
def front_terminal(
    *arguments: str, columns: int = 80, rows: int = 50, environment: Mapping[str, str] | None = None
) -> Generator[PtyProgram]:
    """Start `support.front_program` with these arguments in a terminal of `columns` x `rows`."""
    command = [sys.executable, "-m", "support.front_program", *arguments]
    variables = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(TESTS), **(environment or {})}
    with pty_program(command, folder=Path.cwd(), environment=variables, columns=columns, rows=rows) as program:
        yield program
