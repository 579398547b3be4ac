"""Changes that agents wrote without a review, for the user to keep, undo or bring back."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from isthmus.ide.editor import Capability, EditorError, EditorGoneError
from isthmus.ide.written_changes import views
from isthmus.ide.written_changes.ledger import ChangeError, ChangeSelection
from isthmus.ide.written_changes.recorder import Recorder, UndoOutcome
from isthmus.ide.written_changes.workspace_follower import WorkspaceFollower, real_path
from isthmus.text.visible import printable

STORE_FOLDER: Final = "written"
"""Name of the folder of the stores, in the companion's folder."""
MAXIMUM_LISTED: Final = 1000
"""Maximum number of files whose listed hunks are remembered for their numbers."""


class WrittenChanges(WorkspaceFollower):
    """Changes that agents wrote in the workspace of one companion, which wait for the user."""

    def counts(self) -> dict[str, int]:
        """Return the numbers of :meth:`waiting` as a JSON object."""
        files, turns = self.waiting()
        return {"files": files, "turns": turns}

    def summary(self) -> dict[str, Any]:
        """Return the counts with the agents that wrote, the Unix time of the last look, and the number of changes."""
        recorder = self._recorder
        return {
            **self.counts(),
            "agents": [] if recorder is None else list(recorder.writers),
            "since": 0.0 if recorder is None else recorder.ledger.looked_at,
            "count": self.counter.number,
        }

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
            real = real_path(path)
            if recorder is None or real not in recorder.ledger.files:
                raise ChangeError(f"nothing in {printable(path)} waits for you; see `isthmus ide changes`")
            if turn is not None and turn not in recorder.ledger.files[real].turns:
                raise ChangeError(f"turn {turn} did not change {printable(path)}; see `isthmus ide changes`")
            found = await self._in_thread(lambda: views.file_diff(recorder.ledger, real, turn, self._shown))
            if len(self._listed) >= MAXIMUM_LISTED:
                self._listed.clear()
            self._listed[real, turn] = views.listed_hunks(found)
            return {**found, **self._facts()}

    async def keep(
        self, selection: ChangeSelection, numbers: Sequence[int] | None = None, state: str | None = None
    ) -> dict[str, Any]:
        """Keep what is selected, by ids or by the numbers of the last list, unless it is not in this ``state``.

        Raises:
            ChangeError: it is not there any more.
        """
        async with self._turn:
            recorder = await self._required()
            if state not in (None, self._state):  # with what the comparison has just found
                return {"changed": True}
            chosen = await self._in_thread(lambda: self._numbered(recorder, _resolved(selection), numbers))
            kept = await self._decide(lambda: recorder.keep(chosen))
            self._note()
            return {"kept": [self._shown(path) for path in kept], **self._facts()}

    async def undo(
        self, selection: ChangeSelection, numbers: Sequence[int] | None = None, state: str | None = None
    ) -> dict[str, Any]:
        """Undo what is selected, by ids or by the numbers of the last list, unless it is not in this ``state``.

        Unsaved text in the editor is not touched.

        Raises:
            ChangeError: it is not there any more, or no file could be written.
        """
        async with self._turn:
            recorder = await self._required()
            if state not in (None, self._state):  # with what the comparison has just found
                return {"changed": True}
            chosen = await self._in_thread(lambda: self._numbered(recorder, _resolved(selection), numbers))
            paths = await self._in_thread(lambda: recorder.affected(chosen))
            refused = await self._unsaved(paths)
            done = await self._decide(lambda: recorder.undo(chosen, refused))
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
            done = await self._decide(lambda: recorder.take_back(number, refused))
        return await self._written("restored", done)

    async def begin_turn(self, agent: str, title: str) -> int:
        """Begin a turn, as an agent was sent a prompt; return its number.

        Raises:
            ChangeError: nothing is followed.
        """
        async with self._turn:
            recorder = await self._required()
            agents = (agent,) if agent else tuple(self._agents())
            return await self._decide(lambda: recorder.begin_turn(agents, title))

    async def end_turn(self) -> None:
        """End the turn, as an agent has finished.

        Raises:
            ChangeError: nothing is followed.
        """
        async with self._turn:
            recorder = await self._required()
            await self._decide(recorder.end_turn)

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
            files = {real_path(file.path): file for file in await self._editor.open_files()}
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


def _resolved(selection: ChangeSelection) -> ChangeSelection:
    path = None if selection.path is None else real_path(selection.path)
    return ChangeSelection(path, selection.turn, selection.hunks)
