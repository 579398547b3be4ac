"""Keeps open files equal to the disk: agents that do not ask write files, and the editor has to show what they wrote.

Open files are compared with the disk at intervals, which works for every editor and file system, and at once when an
agent names a file. The editor reads changed ones again by :meth:`isthmus.ide.editor.Editor.reload`.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Final

from isthmus.ide.editor import Capability, Editor, EditorError, EditorGoneError
from isthmus.ide.options import CompanionLimits
from isthmus.ide.workspace_files import FileStamp

MAXIMUM_FILES: Final = 500
"""Maximum number of compared files; those that had the focus longest ago are left out."""
WRITING_SECONDS: Final = 0.02
"""Pause in seconds after a change before the file is read, so that it is seldom read half written."""


class DiskFollower:
    """Follower of the files that are open in one editor. ``is_needed`` returns whether agents are attached."""

    def __init__(
        self,
        editor: Editor,
        is_needed: Callable[[], bool],
        limits: CompanionLimits = CompanionLimits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._editor = editor
        self._is_needed = is_needed
        self._limits = limits
        self._clock = clock
        self._stamps: dict[str, FileStamp | None] = {}
        """Open files, as they were when the editor was asked to read them last; None: not yet."""
        self._turn = asyncio.Lock()
        self._needed = asyncio.Event()
        self._settling: dict[str, float] = {}
        """Files whose diagnostics are awaited, and the time at which they last count as complete."""
        self._limit: dict[str, float] = {}
        self._reported = asyncio.Event()

    def opened(self, paths: Iterable[str]) -> None:
        """Replace the open files, those that had the focus last first. Files that are missing for now are kept."""
        found = dict.fromkeys(paths)
        missing = [path for path in self._stamps if path not in found and FileStamp.of(path) is None]
        self._stamps = {path: self._stamps.get(path) for path in (*found, *missing)[:MAXIMUM_FILES]}

    def wake(self) -> None:
        """Begin to compare, as an agent has attached."""
        self._needed.set()

    async def run(self) -> None:
        """Compare at intervals while agents are attached, and once more after the last one left."""
        if Capability.RELOAD in self._editor.unavailable:
            return
        while True:
            await self._needed.wait()
            if not self._is_needed():
                self._needed.clear()
            try:
                await self.look()
            except EditorGoneError:
                return
            await asyncio.sleep(self._limits.disk_seconds)

    async def look(self) -> None:
        """Have the editor read the files again that have changed since the last look; a busy editor does so later.

        Raises:
            EditorGoneError: the editor has quit.
        """
        if Capability.RELOAD in self._editor.unavailable:
            return
        async with self._turn:
            if not await asyncio.to_thread(_changed, self._stamps.copy()):
                return
            await asyncio.sleep(WRITING_SECONDS)
            changed = await asyncio.to_thread(_changed, self._stamps.copy())
            self._stamps |= {path: stamp for path, stamp in changed.items() if path in self._stamps}
            until = self._clock() + self._limits.settle_diagnostics_seconds
            try:
                checked = await self._editor.reload(tuple(changed))
            except EditorGoneError:
                raise
            except EditorError:
                return
            for path in checked:
                self._settling[path] = self._limit[path] = until

    def diagnostics_changed(self, paths: Iterable[str]) -> None:
        """Note that the diagnostics of files changed."""
        now = self._clock()
        for path in paths:
            if path in self._limit:
                self._settling[path] = min(self._limit[path], now + self._limits.quiet_diagnostics_seconds)
                self._reported.set()

    async def settled(self, path: str | None = None) -> None:
        """Wait until the diagnostics of a file, or of all files, that was just read again are complete, or time is up.

        Raises:
            EditorGoneError: the editor has quit.
        """
        await self.look()
        while (wait := self._remaining(path)) > 0:
            self._reported.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._reported.wait()

    def _remaining(self, path: str | None) -> float:
        now = self._clock()
        for done in [each for each, until in self._settling.items() if until <= now]:
            del self._settling[done], self._limit[done]
        return max((until - now for each, until in self._settling.items() if path in (None, each)), default=0.0)


def _changed(stamps: dict[str, FileStamp | None]) -> dict[str, FileStamp]:
    """Return the files on disk that differ from their stamps, with their new ones."""
    found = ((path, FileStamp.of(path), before) for path, before in stamps.items())
    return {path: stamp for path, stamp, before in found if stamp is not None and stamp != before}
