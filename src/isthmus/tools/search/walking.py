"""Walks the workspace in a thread, with a deadline, and stops when the task is cancelled."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from isthmus.tools.port.workspace import FoundFile, Workspace
from isthmus.tools.search.listing import DEADLINE_SECONDS

T = TypeVar("T")

MAXIMUM_FILES = 200_000
"""Maximum number of files of one walk."""


class Walk:
    """One walk. ``has_ended_early`` is True afterwards if the deadline or the maximum was reached.

    ``for_contents``: contents of the files are read, see :meth:`Workspace.visibility`.
    """

    def __init__(
        self, workspace: Workspace, folder: Path, *, git: bool, gemini: bool = True, for_contents: bool = False
    ) -> None:
        self._workspace = workspace
        self._folder = folder
        self._git = git
        self._gemini = gemini
        self._for_contents = for_contents
        self._stopped = threading.Event()
        self._deadline = time.monotonic() + DEADLINE_SECONDS
        self.has_ended_early = False

    def files(self) -> Iterator[FoundFile]:
        """Yield the files of the walk; for use in the thread of :meth:`run`."""
        options = {"git": self._git, "gemini": self._gemini, "for_contents": self._for_contents}
        found = self._workspace.walk(self._folder, should_stop=self._should_stop, **options)
        for count, file in enumerate(found):
            if count >= MAXIMUM_FILES:
                self.has_ended_early = True
                return
            yield file

    async def run(self, collect: Callable[[Iterator[FoundFile]], T]) -> T:
        """Return the result of `collect` for the files, run in a thread; cancellation stops it at the next folder."""
        try:
            return await asyncio.to_thread(collect, self.files())
        finally:
            self._stopped.set()

    @property
    def note(self) -> str:
        """Note for the model if the walk ended early; otherwise empty."""
        if not self.has_ended_early:
            return ""
        return (
            f"[The search stopped after {MAXIMUM_FILES} files or {DEADLINE_SECONDS:g} s: there may be more. "
            "Name a folder with dir_path.]\n"
        )

    def _should_stop(self) -> bool:
        if time.monotonic() > self._deadline:
            self.has_ended_early = True
        return self.has_ended_early or self._stopped.is_set()
