"""The interactive front on a scripted agent in a terminal of its own."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from support.loaded_program import LoadedProgram
from support.pty_program import PtyProgram, pty_program

FrontTerminal = Callable[..., AbstractContextManager[PtyProgram]]
"""The function :func:`front_terminal`, with a loaded process."""
TESTS = Path(__file__).resolve().parent.parent


@contextmanager
def front_terminal(
    *arguments: str,
    loaded: LoadedProgram | None = None,
    columns: int = 80,
    rows: int = 50,
    environment: Mapping[str, str] | None = None,
) -> Generator[PtyProgram]:
    """Start `support.front_program` with these arguments in a terminal of `columns` x `rows`.

    With `loaded` it is a copy of that process; otherwise Python is started.
    """
    variables = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
    if loaded is None:
        command = [sys.executable, "-m", "support.front_program", *arguments]
        variables = {**variables, "PYTHONPATH": str(TESTS)}
        started = pty_program(command, folder=Path.cwd(), environment=variables, columns=columns, rows=rows)
    else:
        started = loaded.terminal(
            *arguments,
            folder=Path.cwd(),
            environment=variables,
            columns=columns,
            rows=rows,
            program="support.front_program",
        )
    with started as program:
        yield program
