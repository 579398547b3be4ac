"""Keeps open files equal to the disk: agents that do not ask write files, and the editor has to show what they wrote.

Open files are compared with the disk at intervals, which works for every editor and file system, and at once when an
agent names a file. The editor reads changed ones again by :meth:`isthmus.ide.editor.Editor.reload`.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from isthmus.ide.editor import Capability, Editor, EditorError, EditorGoneError
from isthmus.ide.options import CompanionLimits
from isthmus.ide.workspace.workspace_files import FileStamp

MAXIMUM_FILES: Final = 500
"""Maximum number of compared files; those that had the focus longest ago are left out."""
WRITING_SECONDS: Final = 0.02
"""Pause in seconds after a change before the file is read, so that it is seldom read half written."""


@dataclass(slots=True)
class _Settling:
    """A file that was read again, whose new diagnostics are awaited, and the time at which the wait ends."""

    limit: float
    reports: int = 0
    last_report: float = -math.inf


class DiskFollower:
    """Follower of the files that are open in one editor. ``is_needed`` returns whether agents are attached.

    ``changed`` is awaited with the files that have changed on disk, before the editor reads them.
    """

    def __init__(
        self,
        editor: Editor,
        is_needed: Callable[[], bool],
        limits: CompanionLimits = CompanionLimits(),
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[Iterable[str]], Awaitable[None]] | None = None,
    ) -> None:
        self._changed_on_disk = changed
        self._editor = editor
        self._is_needed = is_needed
        self._limits = limits
        self._clock = clock
        self._stamps: dict[str, FileStamp | None] = {}
        """Open files, as they were when the editor was asked to read them last; None: not yet."""
        self._turn = asyncio.Lock()
        self._needed = asyncio.Event()
        self._settling: dict[str, _Settling] = {}
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
            if self._changed_on_disk is not None:
                await self._changed_on_disk(tuple(changed))
            self._stamps |= {path: stamp for path, stamp in changed.items() if path in self._stamps}
            limit = self._clock() + self._limits.settle_diagnostics_seconds
            try:
                checked = await self._editor.reload(tuple(changed))
            except EditorGoneError:
                raise
            except EditorError:
                return
            self._settling |= {path: _Settling(limit) for path in checked}

    def diagnostics_changed(self, paths: Iterable[str]) -> None:
        """Note that the diagnostics of files changed."""
        for path in paths:
            if (settling := self._settling.get(path)) is not None:
                settling.reports += 1
                settling.last_report = self._clock()
                self._reported.set()

    async def settled(self, path: str | None = None) -> None:
        """Wait until the diagnostics of a file, or of all files, that was just read again are complete, or time is up.

        A file that changes all the time, and is read again each time, does not prolong the wait.

        Raises:
            EditorGoneError: the editor has quit.
        """
        await self.look()
        deadline = self._clock() + self._limits.settle_diagnostics_seconds
        while True:
            self._reported.clear()
            awaited = [(each, settling) for each, settling in self._settling.items() if path in (None, each)]
            ends = [await self._end(each, settling) for each, settling in awaited]
            if (wait := min(max(ends, default=-math.inf), deadline) - self._clock()) <= 0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._reported.wait()

    async def _end(self, path: str, settling: _Settling) -> float:
        """Return the time at which the diagnostics of a file count as complete, as far as is known now."""
        quiet = self._limits.quiet_diagnostics_seconds
        if settling.reports == 0:
            end = settling.limit
        else:
            if settling.reports == 1 and not await self._has_diagnostics(path):
                quiet = self._limits.empty_diagnostics_seconds
            end = min(settling.limit, settling.last_report + quiet)
        if end <= self._clock() and self._settling.get(path) is settling:
            del self._settling[path]
        return end

    async def _has_diagnostics(self, path: str) -> bool:
        try:
            return bool(await self._editor.diagnostics(path))
        except EditorGoneError:
            raise
        except EditorError:
            return True  # a busy editor is not waited for


def _changed(stamps: dict[str, FileStamp | None]) -> dict[str, FileStamp]:
    """Return the files on disk that differ from their stamps, with their new ones."""
    found = ((path, FileStamp.of(path), before) for path, before in stamps.items())
    return {path: stamp for path, stamp, before in found if stamp is not None and stamp != before}
