"""Updates the diagnostics of linters in the background, and returns the known ones without a long wait.

Only requested files on disk in the workspace are checked, and checked again after they were written. The linters are
in :mod:`isthmus.ide.linters.linter`.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from isthmus.errors import DecodeError
from isthmus.files.atomic import read_regular
from isthmus.ide.editor import Diagnostic
from isthmus.ide.linters.linter import LINTERS, Linter
from isthmus.ide.linters.process import LinterError, find_program, run_to_end
from isthmus.ide.workspace.workspace_files import FileStamp
from isthmus.text.text_file import BinaryContentError, decode_text

ANSWER_SECONDS: Final = 0.7
MAXIMUM_FILES: Final = 50
"""Maximum number of files in one run; the rest follow in the next run."""
MAXIMUM_KNOWN: Final = 2000
"""Maximum number of files with remembered diagnostics; the files checked longest ago are forgotten."""
MAXIMUM_FILE_BYTES: Final = 4 * 1024 * 1024

_log = logging.getLogger(__name__)


class LinterRunner:
    """Runner of the linters that the user chose by name; ``folders`` are the workspace folders and may be replaced.

    Raises:
        LinterError: a name is unknown, or its program is not installed.
    """

    def __init__(self, names: Sequence[str], folders: Sequence[str] = ()) -> None:
        unknown = [name for name in names if name not in LINTERS]
        if unknown:
            raise LinterError(f"unknown linter {unknown[0]!r}; expected one of {', '.join(LINTERS)}")
        self.folders = folders
        self._runners = [_SingleRunner(LINTERS[name], find_program(name)) for name in dict.fromkeys(names)]

    def look(self, paths: Sequence[str]) -> None:
        """Start checks of the files that have changed, and return at once."""
        for runner in self._runners:
            for path in paths:
                if (folder := self._folder(path)) is not None:
                    runner.look(path, folder)

    async def diagnostics(self, paths: Sequence[str], *, seconds: float = ANSWER_SECONDS) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of files, after waiting at most ``seconds`` for outstanding checks.

        Raises:
            LinterError: no diagnostics are known, because no linter works.
        """
        self.look(paths)
        running = [task for runner in self._runners if (task := runner.task) is not None]
        if running:
            await asyncio.wait(running, timeout=seconds)
        found = tuple(diagnostic for runner in self._runners for path in paths for diagnostic in runner.known(path))
        problems = [runner.problem for runner in self._runners if runner.problem is not None]
        if not found and problems and len(problems) == len(self._runners):
            raise LinterError("; ".join(problems))
        return found

    async def aclose(self) -> None:
        """End all running linters."""
        for runner in self._runners:
            await runner.aclose()

    def _folder(self, path: str) -> str | None:
        """Return the workspace folder that contains a file, links resolved; None if no folder does."""
        real = os.path.realpath(path)
        inside = (folder for folder in self.folders if Path(real).is_relative_to(os.path.realpath(folder)))
        return next(inside, None)


class _SingleRunner:
    """Runner of one linter, at most one process at a time. ``problem`` is the reason why the last run failed."""

    def __init__(self, linter: Linter, program: str) -> None:
        self._linter = linter
        self._program = program
        self._known: dict[str, tuple[FileStamp, tuple[Diagnostic, ...]]] = {}
        self._wanted: dict[str, str] = {}
        self.task: asyncio.Task[None] | None = None
        self.problem: str | None = None

    def known(self, path: str) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of a file from the last run; none if the file is gone."""
        stamp, found = self._known.get(path, (None, ()))
        return found if stamp is not None and FileStamp.of(path) is not None else ()

    def look(self, path: str, folder: str) -> None:
        stamp = FileStamp.of(path)
        is_known = path in self._known and self._known[path][0] == stamp
        if stamp is None or is_known or not path.endswith(self._linter.suffixes):
            return
        self._wanted[path] = folder
        if self.task is None:
            self.task = asyncio.create_task(self._run(), name=f"linter {self._linter.name}")

    async def aclose(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def _run(self) -> None:
        try:
            while self._wanted:
                folder = next(iter(self._wanted.values()))
                paths = [path for path, of in self._wanted.items() if of == folder][:MAXIMUM_FILES]
                for path in paths:
                    del self._wanted[path]
                await self._run_once(folder, paths)
        finally:
            self.task = None

    async def _run_once(self, folder: str, paths: list[str]) -> None:
        # Stamped before the run: a file that is written meanwhile is checked again.
        stamps = {path: stamp for path in paths if (stamp := FileStamp.of(path)) is not None}
        if not stamps:
            return
        try:
            texts = await asyncio.to_thread(_texts, tuple(stamps))
            command = (self._program, *self._linter.command[1:], *stamps)
            output = await run_to_end(command, folder, self._linter.seconds)
            found = self._linter.decode(output, texts)
        except (LinterError, DecodeError) as error:
            if self.problem is None:
                _log.warning("%s: %s", self._linter.name, error)
            self.problem = str(error)
            # Not run again until the file is written.
            found: tuple[Diagnostic, ...] = ()
        else:
            self.problem = None
        self._keep(stamps, found)

    def _keep(self, stamps: dict[str, FileStamp], found: Sequence[Diagnostic]) -> None:
        names = {os.path.realpath(path): path for path in stamps}  # linters may follow links
        by_path: dict[str, list[Diagnostic]] = {path: [] for path in stamps}
        for diagnostic in found:
            if (path := names.get(os.path.realpath(diagnostic.path))) is not None:
                by_path[path].append(replace(diagnostic, path=path))
        for path, diagnostics in by_path.items():
            self._known.pop(path, None)
            self._known[path] = (stamps[path], tuple(diagnostics))
        for oldest in list(self._known)[: max(len(self._known) - MAXIMUM_KNOWN, 0)]:
            del self._known[oldest]


def _texts(paths: Sequence[str]) -> dict[str, str]:
    """Return the texts of files, by their paths and by their real paths."""
    texts: dict[str, str] = {}
    for path in paths:
        with contextlib.suppress(OSError, ValueError, BinaryContentError):
            text = decode_text(read_regular(Path(path), MAXIMUM_FILE_BYTES)).text
            texts |= {path: text, os.path.realpath(path): text}
    return texts
