"""The whole program in a terminal of its own, with a scripted model."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.isthmus_program import ISTHMUS
from support.pty_program import PtyProgram, pty_program

PROMPT = r"(?m)^\u203a ?$"
"""Matches a screen with an empty prompt."""


class Sessions:
    """Starts the program in one folder, with one data folder and one script."""

    def __init__(self, folder: Path, script: str, workspace: Path) -> None:
        self.workspace = workspace
        self._script = folder / "script.yaml"
        self._script.write_text(script, "utf-8")
        self._data = folder / "data"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that choose the model and the data folder."""
        return ("-m", f"scripted:{self._script}", "--no-ide", "--data-dir", str(self._data))

    @contextmanager
    def terminal(
        self, *arguments: str, environment: Mapping[str, str] | None = None, columns: int = 120, rows: int = 100
    ) -> Generator[PtyProgram]:
        """Start it with further arguments."""
        variables = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
        command = [*ISTHMUS, *self.options, *arguments]
        with pty_program(command, folder=self.workspace, environment=variables, columns=columns, rows=rows) as terminal:
            yield terminal
