"""Follows what agents write into the workspace, and lets the user keep or undo it afterwards.

While agents are attached, the workspace is compared with how it was seen last, in a thread of its own and for at most a
twentieth of the time. Comparing, storing and the decisions are in :mod:`isthmus.ide.written_changes.recorder`.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from isthmus.encoding.codec import JsonObject
from isthmus.ide.change_counter import ChangeCounter
from isthmus.ide.editor import Capability, Editor, EditorError, EditorGoneError
from isthmus.ide.written_changes import views
from isthmus.ide.written_changes.disk_files import StoppedError
from isthmus.ide.written_changes.ledger import ChangeError, ChangeSelection
from isthmus.ide.written_changes.recorder import Recorder, UndoOutcome
from isthmus.ide.written_changes.store import has_store, open_store
from isthmus.text.visible import printable

STORE_FOLDER: Final = "written"
"""Name of the folder of the stores, in the companion's folder."""
SHARE: Final = 20
"""A comparison is followed by a pause of at least this many times its duration."""
RECOVER_SECONDS: Final = 300.0
"""Time in seconds after the end of a companion within which changes are those of the agents that were attached."""
RETURN_SECONDS: Final = 60.0
"""Time in seconds after such a start in which these agents may attach again, and count as attached until then."""
TOUCH_SECONDS: Final = 0.5
"""Maximum time in seconds for which the editor waits until what it is about to show is recorded."""
MAXIMUM_LISTED: Final = 1000
"""Maximum number of files whose listed hunks are remembered for their numbers."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


@runtime_checkable
class ChangesFront(Protocol):
    """An editor that shows what agents wrote, and asks for more by the commands of the control channel."""

    def serve_changes(self, ask: Callable[[str, JsonObject], Awaitable[JsonObject]]) -> None:
        """Take the function that runs a command ``written``, ``written_file`` and so on, for the life of the editor."""
        ...

    def changes_written(self, files: int, turns: int) -> None:
        """Take the number of files and turns that wait for the user after any change of them, and return at once."""
        ...


class WrittenChanges:
    """Changes that agents wrote in the workspace of one companion, which wait for the user.

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
    ) -> None:
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
        self._folders: tuple[str, ...] = ()
        self._shown_folders: tuple[tuple[str, str], ...] = ()
        self._attached: tuple[str, ...] = ()
        self._returning_until = 0.0
        self._needed = asyncio.Event()
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="isthmus-written")
        self._listed: dict[tuple[str, int | None], list[str]] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    # Following.

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
                        await self._look()
                    pause = max(self._seconds, SHARE * (time.monotonic() - began))
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._needed.wait()
                    self._needed.clear()
        finally:
            await self._close()

    async def touched(self, paths: Iterable[str]) -> None:
        """Compare some files now, before the editor shows what was written and the user can save over it.

        Return after at most :data:`TOUCH_SECONDS`; the comparison goes on.
        """
        if self._recorder is not None and self._agents():
            task = self._in_background(self._look_at([_real(path) for path in paths]))
            await asyncio.wait({task}, timeout=TOUCH_SECONDS)

    def saved(self, path: str) -> None:
        """Record that the user saved a file in the editor."""
        if self._recorder is not None:
            self._in_background(self.record_save(path))

    async def record_save(self, path: str) -> None:
        """Record that the user saved a file; return when it is recorded."""
        async with self._turn:
            recorder = self._recorder
            if recorder is not None and await self._guarded(lambda: recorder.saved(_real(path))):
                self._note()

    def accepted(self, path: str, text: str) -> None:
        """Expect that an agent writes a text that the user accepted in a review of the file with this real path."""
        if (recorder := self._recorder) is not None:
            self._thread.submit(recorder.accepted, path, text)

    async def _look_at(self, paths: Collection[str]) -> None:
        async with self._turn:
            recorder = self._recorder
            if recorder is not None and await self._guarded(lambda: recorder.look(self._attached or None, paths)):
                self._note()

    async def _look(self) -> None:
        """Compare the whole workspace once; what changed is the agents' if any are attached, or were until now."""
        agents = tuple(self._agents())
        await self._open(must_follow=bool(agents))
        if not agents and time.monotonic() < self._returning_until:
            agents = self._attached
        if (recorder := self._recorder) is None:
            self._attached = agents
            return
        by = self._attached or None
        found = await self._guarded(lambda: recorder.look(by))
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
            shown = tuple(await self._workspace_folders())
        except EditorError:
            return
        real = tuple(dict.fromkeys(_real(folder) for folder in shown))
        if self._recorder is not None and real == self._folders:
            return
        if self._recorder is not None:
            await self._in_thread(self._closing())
            self._recorder = None
        home = _real(str(Path.home()))
        narrow = tuple(folder for folder in real if not (home + "/").startswith(folder.rstrip("/") + "/"))
        self._folders = real
        self._shown_folders = tuple((_real(folder), folder.rstrip("/") or "/") for folder in shown)
        if not narrow:
            self.problem = "the workspace is your home folder, or one above it, and is not followed"
            return
        if (recorder := await self._guarded(lambda: self._opened(shown, narrow))) is None:
            return
        self.problem = ""
        self._recorder = recorder
        if recorder.were_attached and not self._agents():
            self._attached = recorder.were_attached
            self._returning_until = time.monotonic() + RETURN_SECONDS
            self._needed.set()
        if not must_follow:
            self._note()

    def _opened(self, shown: Sequence[str], folders: Sequence[str]) -> Recorder:
        """Open the store, and record what changed while it was closed. Blocks."""
        store = open_store(self._folder, self._editor.identity.name, shown)
        self._in_use = recorder = Recorder(store, folders)
        if recorder.has_baseline:
            if time.time() - store.closed_at > RECOVER_SECONDS:
                recorder.attached(())
            recorder.look(recorder.were_attached or None)
        return recorder

    def _closing(self) -> Callable[[], None]:
        """Return the work that closes the store, if it is open."""
        is_attached = bool(self._agents())

        def close() -> None:
            if self._in_use is not None:
                self._in_use.close(is_attached=is_attached)
            self._in_use = None

        return close

    async def _close(self) -> None:
        if self._in_use is not None:
            self._in_use.is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._recorder = None
        with suppress(sqlite3.Error, OSError):
            await self._in_thread(self._closing())
        self._thread.shutdown(wait=False)

    # For the user.

    def waiting(self) -> tuple[int, int]:
        """Return the number of files and of turns that wait for the user."""
        if self._recorder is None:
            return 0, 0
        ledger = self._recorder.ledger
        written = [woven for woven in tuple(ledger.files.values()) if woven.is_written]
        return len(written), len({turn for woven in written for turn in woven.turns})

    def counts(self) -> dict[str, int]:
        """Return the numbers of :meth:`waiting` as a JSON object."""
        files, turns = self.waiting()
        return {"files": files, "turns": turns}

    async def listing(self) -> dict[str, Any]:
        """Compare the workspace, and return what was written, by turn and by file."""
        async with self._turn:
            recorder = await self._fresh()
            if recorder is None:
                return {"since": 0.0, "turns": [], "files": [], "undos": [], **self._facts()}
            found = await self._in_thread(lambda: views.listing(recorder.ledger, time.time(), self._shown))
            return {**found, **self._facts()}

    async def file_diff(self, path: str, turn: int | None) -> dict[str, Any]:
        """Return the texts and hunks of a changed file, of one turn or of all, and remember the hunks' numbers.

        Raises:
            ChangeError: nothing in the file waits for the user.
        """
        async with self._turn:
            recorder = await self._fresh()
            real = _real(path)
            if recorder is None or real not in recorder.ledger.files:
                raise ChangeError(f"nothing in {printable(path)} waits for you; see `isthmus ide changes`")
            if turn is not None and turn not in recorder.ledger.files[real].turns:
                raise ChangeError(f"turn {turn} did not change {printable(path)}; see `isthmus ide changes`")
            found = await self._in_thread(lambda: views.file_diff(recorder.ledger, real, turn, self._shown))
            if len(self._listed) >= MAXIMUM_LISTED:
                self._listed.clear()
            self._listed[real, turn] = views.listed_hunks(found)
            return {**found, **self._facts()}

    async def keep(self, selection: ChangeSelection, numbers: Sequence[int] | None = None) -> dict[str, Any]:
        """Keep what is selected, by ids or by the numbers of the last list.

        Raises:
            ChangeError: it is not there any more.
        """
        async with self._turn:
            recorder = await self._required()
            chosen = self._numbered(recorder, _resolved(selection), numbers)
            kept = await self._in_thread(lambda: recorder.keep(chosen))
            self._note()
            return {"kept": [self._shown(path) for path in kept], **self._facts()}

    async def undo(self, selection: ChangeSelection, numbers: Sequence[int] | None = None) -> dict[str, Any]:
        """Undo what is selected, by ids or by the numbers of the last list; unsaved text in the editor is not touched.

        Raises:
            ChangeError: it is not there any more, or no file could be written.
        """
        async with self._turn:
            recorder = await self._required()
            chosen = self._numbered(recorder, _resolved(selection), numbers)
            paths = await self._in_thread(lambda: recorder.affected(chosen))
            refused = await self._unsaved(paths)
            done = await self._in_thread(lambda: recorder.undo(chosen, refused))
        return await self._written("undone", done)

    async def take_back(self, number: int | None = None) -> dict[str, Any]:
        """Take an undo back, by default the newest one.

        Raises:
            ChangeError: there is none, or the files have changed there since.
        """
        async with self._turn:
            recorder = await self._required()
            paths = await self._in_thread(lambda: recorder.affected_by_taking_back(number))
            refused = await self._unsaved(paths)
            done = await self._in_thread(lambda: recorder.take_back(number, refused))
        return await self._written("restored", done)

    async def begin_turn(self, agent: str, title: str) -> int:
        """Begin a turn, as an agent was sent a prompt; return its number.

        Raises:
            ChangeError: nothing is followed.
        """
        async with self._turn:
            recorder = await self._required()
            agents = (agent,) if agent else tuple(self._agents())
            return await self._in_thread(lambda: recorder.begin_turn(agents, title))

    async def end_turn(self) -> None:
        """End the turn, as an agent has finished.

        Raises:
            ChangeError: nothing is followed.
        """
        async with self._turn:
            recorder = await self._required()
            await self._in_thread(recorder.end_turn)

    def is_current(self, state: str) -> bool:
        """Return whether nothing has changed since a state that was returned."""
        return state == self._state

    @property
    def _state(self) -> str:
        return "" if self._recorder is None else f"{id(self):x}.{self._recorder.revision}"

    def _facts(self) -> dict[str, Any]:
        recorder = self._recorder
        is_following = recorder is not None and recorder.has_baseline and bool(self._attached)
        return {
            "state": self._state,
            "count": self.counter.number,
            "following": is_following,
            "partial": recorder is not None and recorder.is_partial,
            "problem": self.problem,
        }

    async def _written(self, name: str, done: UndoOutcome) -> dict[str, Any]:
        self._note()
        if self._reload is not None:
            with suppress(EditorError):
                await self._reload()
        return {
            name: [self._shown(path) for path in done.paths],
            "undo": done.number,
            "problems": list(done.problems),
            **self._facts(),
        }

    async def _fresh(self) -> Recorder | None:
        """Compare the workspace, if it is followed."""
        await self._open(must_follow=True)
        if self._recorder is not None and self._recorder.has_baseline:
            await self._look()
        return self._recorder

    async def _required(self) -> Recorder:
        recorder = await self._fresh()
        if recorder is None:
            raise ChangeError(self.problem or "nothing was written since you last looked")
        return recorder

    def _numbered(
        self, recorder: Recorder, selection: ChangeSelection, numbers: Sequence[int] | None
    ) -> ChangeSelection:
        """Return the selection with the hunks of these numbers, as they were listed last."""
        if numbers is None:
            return selection
        if selection.path is None:
            raise ChangeError("hunks are numbered in each file; name the file, too")
        listed = self._listed.get((selection.path, selection.turn))
        if listed is None:
            listed = [hunk.id for hunk in recorder.ledger.hunks(selection.path, selection.turn)]
        unknown = [number for number in numbers if not 1 <= number <= len(listed)]
        if unknown:
            known = f"the hunks are 1-{len(listed)}" if listed else "there are no hunks"
            raise ChangeError(
                f"no hunk has the number {unknown[0]}; {known}, as `isthmus ide changes --diff` lists them"
            )
        chosen = tuple(listed[number - 1] for number in numbers)
        return ChangeSelection(selection.path, selection.turn, chosen)

    async def _unsaved(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the files with unsaved text in the editor, and why they cannot be written."""
        name = self._editor.identity.display_name
        try:
            files = {_real(file.path): file for file in await self._editor.open_files()}
            refused: dict[str, str] = {}
            for path in paths:
                file = files.get(path)
                if file is None or Capability.DIRTY in self._editor.unavailable:
                    continue
                if file.is_dirty or await self._editor.is_dirty(file.path):
                    shown = printable(self._shown(path))
                    refused[path] = f"{shown} has unsaved text in {name}; save it there first, then undo"
            return refused
        except EditorGoneError:
            return {}
        except EditorError as error:
            raise ChangeError(f"{name} does not say whether it has unsaved text ({error}); try again") from error

    def _shown(self, path: str) -> str:
        for real, shown in self._shown_folders:
            if path.startswith(real.rstrip("/") + "/"):
                return shown.rstrip("/") + "/" + path[len(real.rstrip("/")) + 1 :]
        return path

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
            problem = f"what agents write cannot be followed: {error}"
            if problem != self.problem:
                _log.warning("%s", problem)
            self.problem = problem
            return None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _in_background(self, work: Awaitable[None]) -> "asyncio.Future[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _resolved(selection: ChangeSelection) -> ChangeSelection:
    path = None if selection.path is None else _real(selection.path)
    return ChangeSelection(path, selection.turn, selection.hunks)


def _real(path: str) -> str:
    return os.path.realpath(path)
