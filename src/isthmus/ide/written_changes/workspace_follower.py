"""Follows what agents write into a workspace.

While agents are attached, the workspace is compared with how it was seen last, in a thread of its own and for at most a
twentieth of the time. Comparing and storing are in :mod:`isthmus.ide.written_changes.recorder`.
"""

import asyncio
import logging
import math
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from isthmus.ide.change_counter import ChangeCounter
from isthmus.ide.editor import Editor, EditorError
from isthmus.ide.written_changes.disk_files import StoppedError
from isthmus.ide.written_changes.followed_files import SETTLING_SECONDS
from isthmus.ide.written_changes.followed_folders import FollowedFolders
from isthmus.ide.written_changes.front import ChangesFront
from isthmus.ide.written_changes.ledger import ChangeError
from isthmus.ide.written_changes.recorder import Recorder
from isthmus.ide.written_changes.store import has_store, open_store
from isthmus.runtime.running_tasks import RunningTasks

SHARE: Final = 20
"""A comparison is followed by a pause of at least this many times its duration."""
RECOVER_SECONDS: Final = 300.0
"""Time in seconds after the end of a companion within which changes count as the attached agents' own."""
RETURN_SECONDS: Final = 60.0
"""Time in seconds after the next start in which these agents may attach again, and count as attached until then."""
TOUCH_SECONDS: Final = 0.5
"""Maximum time in seconds for which the editor waits until what it is about to show is recorded."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class EndedError(StoppedError, ChangeError):
    """The companion has ended, and the store is closed."""

    def __init__(self) -> None:
        super().__init__("the companion has ended; what agents wrote is listed again when it has started")


class WorkspaceFollower:
    """Follower of what agents write in the workspace of one companion.

    ``agents`` returns the titles of the attached agents, ``folders`` the workspace folders. ``changed`` is called after
    each change, ``reload`` after a decision has written files.
    """

    def __init__(
        self,
        editor: Editor,
        agents: Callable[[], Sequence[str]],
        folders: Callable[[], Awaitable[Sequence[str]]],
        folder: Path,
        *,
        seconds: float = 1.0,
        is_wanted: bool = True,
        changed: Callable[[], None] = lambda: None,
        reload: Callable[[], Awaitable[None]] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._editor = editor
        self._agents = agents
        self._workspace_folders = folders
        self._folder = folder
        self._seconds = seconds
        self._changed = changed
        self._reload = reload
        self.counter = ChangeCounter()
        """Count of the changes, for those that wait for the next one."""
        self._is_wanted = is_wanted
        self.problem = "" if is_wanted else "the companion was started with --no-record"
        """Reason why nothing is followed; empty if all is well."""
        self._recorder: Recorder | None = None
        self._in_use: Recorder | None = None
        """Recorder whose store is open, also while nobody waits for it any longer; set in the thread."""
        self._has_ended = False
        """Whether the store is closed for good; set in the thread."""
        self._folders = FollowedFolders()
        self._attached: tuple[str, ...] = ()
        self._returning_until = -math.inf
        self._needed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="isthmus-written")
        self._tasks = RunningTasks()
        self._listed: dict[tuple[str, int | None], list[str]] = {}
        """Hunks of files in the order of their numbers, by path and turn, as the user was shown them last."""

    def wake(self) -> None:
        """Begin to follow, as an agent has attached or left."""
        self._needed.set()

    async def run(self) -> None:
        """Follow the workspace while agents are attached, until cancelled."""
        try:
            with suppress(EditorError):
                folders = await self._workspace_folders()
                if self._is_wanted and await asyncio.to_thread(
                    has_store, self._folder, self._editor.identity.name, folders
                ):
                    async with self._turn:
                        await self._open()
            while True:
                await self._needed.wait()
                self._needed.clear()
                while self._agents() or self._attached:
                    began = time.monotonic()
                    async with self._turn:
                        await self._look(settles=False)
                    pause = max(self._seconds, SHARE * (time.monotonic() - began))
                    if self._recorder is not None and (unfinished := self._recorder.being_written):
                        await self._sleep(SETTLING_SECONDS)  # meanwhile the user's editor may report a save
                        await self._look_at(unfinished)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._needed.wait()
                    self._needed.clear()
        except Exception:
            _log.exception("what agents write is not followed any longer")
            raise
        finally:
            await self._close()

    async def touched(self, paths: Iterable[str]) -> None:
        """Compare some files now, before the editor shows what was written and the user can save over it.

        Return after at most :data:`TOUCH_SECONDS`; the comparison goes on.
        """
        if self._recorder is not None and self._agents():
            task = self._tasks.start(self._look_at([real_path(path) for path in paths]))
            await asyncio.wait({task}, timeout=TOUCH_SECONDS)

    def saved(self, path: str) -> None:
        """Record that the user saved a file in the editor."""
        if self._recorder is not None:
            self._tasks.start(self.record_save(path))

    async def record_save(self, path: str) -> None:
        """Record that the user saved a file; return when it is recorded."""
        async with self._turn:
            recorder = self._recorder
            if recorder is not None and await self._guarded(lambda: recorder.saved(real_path(path))):
                self._note()

    def accepted(self, path: str, text: str) -> None:
        """Expect that an agent writes a text that the user accepted in a review of the file with this real path."""
        if (recorder := self._recorder) is not None:
            self._thread.submit(recorder.accepted, path, text)

    async def _look_at(self, paths: Collection[str]) -> None:
        async with self._turn:
            recorder = self._recorder
            if recorder is not None and await self._settled(recorder, self._attached or None, paths):
                self._note()

    async def _settled(self, recorder: Recorder, by: Sequence[str] | None, paths: Collection[str] | None) -> bool:
        """Compare, and wait until nothing is half written; return whether something changed."""
        found = await self._guarded(lambda: recorder.look(by, paths, leaves_recent=True))
        while self._recorder is recorder and (unfinished := recorder.being_written):
            await self._sleep(SETTLING_SECONDS)  # no file is left for longer than MAXIMUM_SETTLING_SECONDS
            again = partial(recorder.look, by, unfinished, leaves_recent=True)
            found = await self._guarded(again) or found
        return bool(found)

    async def _look(self, *, settles: bool = True) -> None:
        """Compare the whole workspace once; what changed is the agents' if any are attached, or were until now.

        Without ``settles`` files that may be half written are left to a later look, but never beyond the agents' stay.
        """
        agents = tuple(self._agents())
        await self._open(must_follow=bool(agents))
        if not agents and time.monotonic() < self._returning_until:
            agents = self._attached
        if (recorder := self._recorder) is None:
            self._attached = agents
            return
        by = self._attached or None
        if settles or agents != self._attached:
            found = await self._settled(recorder, by, None)
        else:
            found = await self._guarded(lambda: recorder.look(by, leaves_recent=True))
        if agents != recorder.were_attached:
            await self._guarded(lambda: recorder.attached(agents))
        self._attached = agents
        if found:
            self._note()

    async def _open(self, *, must_follow: bool = False) -> None:
        """Open the store of the present workspace folders, unless it is open."""
        if not self._is_wanted:
            return
        try:
            folders = FollowedFolders.of(await self._workspace_folders())
        except EditorError:
            return
        if self._recorder is not None and folders == self._folders:
            return
        if self._recorder is not None:
            await self._in_thread(self._closing())
            self._recorder = None
        self._folders = folders
        if not folders.followed:
            self.problem = "the workspace is your home folder, or one above it, and is not followed"
            return
        if (recorder := await self._guarded(lambda: self._opened(folders))) is None:
            return
        self.problem = ""
        self._recorder = recorder
        if recorder.were_attached and not self._agents():
            self._attached = recorder.were_attached
            self._returning_until = time.monotonic() + RETURN_SECONDS
            self._needed.set()
        if not must_follow:
            self._note()

    def _opened(self, folders: FollowedFolders) -> Recorder:
        """Open the store, and record what changed while it was closed. Blocks."""
        store = open_store(self._folder, self._editor.identity.name, folders.shown)
        self._in_use = recorder = Recorder(store, folders.followed)
        if recorder.has_baseline:
            if time.time() - store.closed_at > RECOVER_SECONDS:
                recorder.attached(())
            recorder.look(recorder.were_attached or None)
        return recorder

    def _closing(self, *, may_remove: bool = True) -> Callable[[], None]:
        """Return the work that closes the store, if it is open."""
        is_needed = not may_remove or bool(self._agents())

        def close() -> None:
            if self._in_use is not None:
                self._in_use.close(is_needed=is_needed)
            self._in_use = None

        return close

    async def _close(self) -> None:
        if self._in_use is not None:
            self._in_use.stop()
        await self._tasks.cancel()
        self._recorder = None
        closing = self._closing()

        def close_for_good() -> None:
            self._has_ended = True
            closing()

        with suppress(sqlite3.Error, OSError):
            await self._in_thread(close_for_good)
        self._thread.shutdown(wait=False)

    def waiting(self) -> tuple[int, int]:
        """Return the number of files and of turns that wait for the user."""
        return (0, 0) if self._recorder is None else self._recorder.counts

    def _shown(self, path: str) -> str:
        return self._folders.shown_path(path)

    def _note(self) -> None:
        self.counter.add()
        self._changed()
        if isinstance(self._editor, ChangesFront):
            self._editor.changes_written(*self.waiting())

    async def _guarded(self, work: Callable[[], T]) -> T | None:
        """Run work in the thread; a failure of the store is logged once, and nothing else fails because of it."""
        try:
            return await self._in_thread(work)
        except StoppedError:
            return None
        except (OSError, sqlite3.Error) as error:
            await self._give_up(error)
            return None

    async def _decide(self, work: Callable[[], T]) -> T:
        """Run a decision of the user in the thread.

        Raises:
            ChangeError: it cannot be carried out, or not be stored.
        """
        try:
            return await self._in_thread(work)
        except (OSError, sqlite3.Error) as error:
            await self._give_up(error)
            raise ChangeError(f"it cannot be stored: {error}; see `isthmus ide changes` for how it is now") from error

    async def _give_up(self, error: Exception) -> None:
        """Close the store after a failure, such as a full disk: the next comparison opens it as it was before."""
        problem = f"what agents write cannot be followed: {error}"
        if problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem
        self._recorder = None
        with suppress(sqlite3.Error, OSError, StoppedError):
            await self._in_thread(self._closing(may_remove=False))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run work in the thread.

        Raises:
            EndedError: the store is closed; work that waited for the thread meanwhile would open it again.
        """

        def unless_ended() -> T:
            if self._has_ended:
                raise EndedError
            return work()

        try:
            running = asyncio.get_running_loop().run_in_executor(self._thread, unless_ended)
        except RuntimeError as error:  # the thread is shut down
            raise EndedError from error
        return await running


def real_path(path: str) -> str:
    """Return a path with its links resolved."""
    return os.path.realpath(path)
