"""The companion: one editor, the clients that are attached to it, and the information that they may have about it.

Independent of protocol and transport. A wire attaches a :class:`Client` and uses only the companion, never the editor
itself, so that hidden files stay hidden (:mod:`isthmus.ide.workspace.privacy`). Reviews are in
:mod:`isthmus.ide.reviews.review_queue`.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from isthmus.files.locations import data_directory
from isthmus.ide.agent_client import AgentObserver, Client
from isthmus.ide.change_counter import ChangeCounter
from isthmus.ide.context_tracker import ContextTracker, UserFocus, can_be_sent
from isthmus.ide.control.asking import CompanionQuestions
from isthmus.ide.editor import (
    Capability,
    ContextChanged,
    Diagnostic,
    DiagnosticsChanged,
    DiffAccepted,
    DiffEdited,
    DiffRejected,
    Editor,
    EditorError,
    EditorEvent,
    EditorGoneError,
    FileMentioned,
    FileSaved,
    NotAvailableError,
    OpenFile,
    Position,
    Range,
    WorkspaceChanged,
)
from isthmus.ide.linters.process import LinterError
from isthmus.ide.linters.runner import LinterRunner
from isthmus.ide.mcp.custom_tools import ToolRegistry
from isthmus.ide.mentions import Mentions
from isthmus.ide.options import CompanionLimits, CompanionOptions
from isthmus.ide.reviews.kept_text import KEPT_FOLDER, KeptTexts
from isthmus.ide.reviews.review import DiffReview
from isthmus.ide.reviews.review_answers import ReviewAnswers
from isthmus.ide.reviews.review_queue import ReviewQueue
from isthmus.ide.workspace.disk_follower import DiskFollower
from isthmus.ide.workspace.privacy import HiddenFiles
from isthmus.ide.workspace.workspace_files import require_within_reach
from isthmus.ide.written_changes.written_changes import STORE_FOLDER, WrittenChanges
from isthmus.rpc.wire_log import WireRecord


class Companion:
    """Connection between an editor and its clients. Other methods may be called while :meth:`run` does the work.

    Args:
        editor: The editor, attached. It is not closed here.
        options: Choices of the user at the start; None for the defaults.
        clock: Seconds of a monotonic clock.
        workspace_changed: Called after the folders of the editor have changed.
        kept: Place of texts that were typed into undecided reviews; None for the user's data folder.
        limits: Sizes, counts and timeouts.
    """

    def __init__(
        self,
        editor: Editor,
        options: CompanionOptions | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        workspace_changed: Callable[[], None] = lambda: None,
        kept: KeptTexts | None = None,
        limits: CompanionLimits = CompanionLimits(),
    ) -> None:
        self.editor = editor
        self.options = options or CompanionOptions()
        self.limits = limits
        self.changes = ChangeCounter()
        """Count of the changes that pages show."""
        self.asking = CompanionQuestions(editor, clock, self.changes.add)
        self.wire = WireRecord()
        """Newest messages between agents and companion, for the user."""
        self.tools = ToolRegistry(editor)
        self.tool = self.tools.tool
        self._clock = clock
        self._workspace_changed = workspace_changed
        self._clients: dict[str, Client] = {}
        self.kept_texts = kept or KeptTexts(data_directory() / KEPT_FOLDER)
        self.queue = ReviewQueue(editor, self._clients, self.kept_texts, limits.reviews, self.changes.add)
        """Queue of the reviews. :meth:`open_diff` adds to it, and clients close reviews."""
        self.reviews = self.queue.reviews
        """Reviews that wait for a decision; read-only."""
        self.hidden = HiddenFiles()
        """Files whose contents must not reach agents."""
        self._linters = LinterRunner(self.options.linters) if self.options.linters else None
        self._tracker = ContextTracker(self._is_visible)
        self._disk = DiskFollower(
            editor, lambda: bool(self._clients), limits, changed=lambda paths: self.written.touched(paths)
        )
        self.written = WrittenChanges(
            editor,
            lambda: tuple(client.title for client in self._clients.values()),
            self.workspace_folders,
            data_directory() / "companions" / STORE_FOLDER,
            seconds=limits.written_seconds,
            is_wanted=self.options.records_changes,
            changed=self.changes.add,
            reload=self._disk.look,
        )
        """Changes that agents wrote without a review, for the user to keep or undo."""
        self.answers = ReviewAnswers(self.queue, editor, self.written.accepted)
        """Answers of the user to the reviews."""
        self._latest_selection: OpenFile | None = None
        self.mentions = Mentions(self._clients, clock)
        self._dirty = asyncio.Event()

    @property
    def clients(self) -> tuple[Client, ...]:
        """Attached clients."""
        return tuple(self._clients.values())

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the workspace folders from the options; without any there, the editor's."""
        folders = self.options.folders or await self.editor.workspace_folders()
        if folders != self.hidden.folders:  # agents ask often, and to resolve folders takes longer than the answer
            if self.hidden.folders:  # an editor that was busy when it moved reports the change late
                self._workspace_changed()
            self.hidden.folders = folders
            if self._linters is not None:
                self._linters.folders = folders
        return folders

    async def run(self) -> None:
        """Handle the editor's events until it quits; return when the last ones are delivered.

        Then, and also on an error, all reviews end: views are closed, clients are notified, and typed text is kept.
        """
        tasks = [asyncio.create_task(work) for work in (self._send_contexts(), self._disk.run(), self.written.run())]
        try:
            with contextlib.suppress(EditorError):
                await self.workspace_folders()
            async for event in self.editor.changes():
                await self._handle(event)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.asking.stop()
            await self.queue.stop()
            if self._linters is not None:
                await self._linters.aclose()

    def attach(self, client: Client) -> None:
        """Let a client receive contexts and open reviews."""
        is_new = client.id not in self._clients
        self._clients[client.id] = client
        self._disk.wake()
        self.written.wake()
        if is_new:
            self._report_agents()

    async def detach(self, client_id: str) -> None:
        """Forget a client and close its views without a decision. What the user typed is kept."""
        self._clients.pop(client_id, None)
        self.written.wake()
        self._report_agents()
        self.asking.forget(client_id)
        await self.queue.close_all(client_id)

    def _report_agents(self) -> None:
        self.changes.add()
        if isinstance(self.editor, AgentObserver):
            self.editor.agents_changed({client.id: client.title for client in self.clients})

    # Information for clients.

    @property
    def is_trusted(self) -> bool | None:
        """Whether the user trusts the workspace: the companion's option, or, if it is None, what the editor reports."""
        return self.editor.is_trusted if self.options.is_trusted is None else self.options.is_trusted

    async def context(self) -> UserFocus:
        """Return the current focus of the user."""
        await self._refresh()
        return self._tracker.latest

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the files that agents may know of: the active one first, the others by last focus.

        Only the active file may have a selection.

        Raises:
            EditorError: the editor does not answer.
        """
        await self._disk.look()
        return self._tracker.filtered(await self._snapshot())

    @property
    def latest_selection(self) -> OpenFile | None:
        """File with the latest selection, as it was then; None without one, or if the file is now gone or hidden."""
        latest = self._latest_selection
        return latest if latest is not None and self._is_visible(latest.path) else None

    async def diagnostics(self, path: str | None = None, *, for_agents: bool = True) -> tuple[Diagnostic, ...]:
        """Return the known diagnostics of one file, or of all open files, within a second.

        They come from the editor and from the linters that the user chose. With ``for_agents``, hidden files are left
        out. Files that changed on disk are read again first, and their new diagnostics waited for, two seconds longer.

        Raises:
            NotAvailableError: the editor has no diagnostics, and no linters were chosen.
            EditorError: the editor does not answer, or no linter works.
        """
        if for_agents and (self.hidden.hides(path) if path is not None else not self.options.share_context):
            return ()
        reason = self.editor.unavailable.get(Capability.DIAGNOSTICS)
        if reason is not None and self._linters is None:
            raise NotAvailableError(self.editor.identity, reason)
        await self._disk.settled(path)
        try:
            async with asyncio.timeout(self.limits.diagnostics_seconds):
                of_editor, of_linters = await asyncio.gather(
                    self.editor.diagnostics(path) if reason is None else _no_diagnostics(),
                    self._linter_diagnostics(path),
                )
        except TimeoutError as error:
            name = self.editor.identity.display_name
            seconds = self.limits.diagnostics_seconds
            raise EditorError(f"{name} did not report its diagnostics within {seconds} s") from error
        found = tuple(dict.fromkeys((*of_editor, *of_linters)))
        hidden = {name for name in {diagnostic.path for diagnostic in found} if for_agents and self.hidden.hides(name)}
        return tuple(diagnostic for diagnostic in found if diagnostic.path not in hidden)

    async def _linter_diagnostics(self, path: str | None) -> tuple[Diagnostic, ...]:
        if self._linters is None:
            return ()
        if not self._linters.folders:
            await self.workspace_folders()
        paths = [path] if path is not None else [file.path for file in (await self.context()).files]
        try:
            return await self._linters.diagnostics(paths)
        except LinterError as error:
            if Capability.DIAGNOSTICS in self.editor.unavailable:
                raise EditorError(str(error)) from error
            return ()  # the error is logged; the editor's own diagnostics are still useful

    # Reviews.

    @property
    def shows_diffs(self) -> bool:
        """Whether the options allow :meth:`open_diff` and the editor supports it."""
        return self.options.show_diffs and Capability.DIFF not in self.editor.unavailable

    async def open_diff(self, client: Client, file_path: str, proposed: str, *, tab_name: str = "") -> DiffReview:
        """Show a proposed edit to the user, as :meth:`ReviewQueue.open` does, unless the options or the path forbid it.

        Raises:
            EditorError: nothing can be shown, or the file is outside the workspace and not open.
        """
        if not self.options.show_diffs:
            raise EditorError("openDiff: the user started the companion with --no-diff; ask in your own terminal")
        if not self.queue.is_stopped:
            await require_within_reach(file_path, await self.workspace_folders(), self.editor)
        return await self.queue.open(client, file_path, proposed, tab_name)

    async def mention(
        self, path: str, start_line: int | None = None, end_line: int | None = None, *, selects: bool = True
    ) -> bool:
        """Point the most recently used agent to a file, or to lines in it (0-based, both included).

        The file is opened and, unless ``selects`` is false, the lines are selected if the editor can do that. Return
        False if no attached agent can be sent a file; the mention is kept for one that attaches soon.

        Raises:
            EditorError: the file cannot be opened, or is hidden from agents; no agent is notified.
        """
        await self.workspace_folders()
        if (reason := self._mention_problem(path)) is not None:
            raise EditorError(reason)
        at = None
        if start_line is not None and selects:
            at = Range(Position(start_line, 0), Position((start_line if end_line is None else end_line) + 1, 0))
        if Capability.OPEN not in self.editor.unavailable:
            await self.editor.open_file(path, at)
        elif not self._is_visible(path):
            raise EditorError(f"there is no file {path}")
        return self.mentions.notify(FileMentioned(path, start_line, start_line if end_line is None else end_line))

    # The editor.

    async def _handle(self, event: EditorEvent) -> None:
        match event:
            case ContextChanged():
                self._note_change()
            case WorkspaceChanged():
                with contextlib.suppress(EditorError):
                    await self.workspace_folders()
                self._workspace_changed()
                self._note_change()
            case DiffAccepted(review_id, content):
                await self.answers.accepted_in_editor(review_id, content)
            case DiffRejected(review_id, content):
                await self.answers.rejected_in_editor(review_id, content)
            case DiffEdited(review_id, content):
                self.answers.typed(review_id, content)
            case FileSaved(path):
                self.written.saved(path)
            case FileMentioned():
                if (reason := self._mention_problem(event.path)) is not None:
                    self.queue.notices.show(reason)
                elif not self.mentions.notify(event):
                    self.queue.notices.show(self.mentions.undelivered_message(event.path))
            case DiagnosticsChanged(paths):
                self._disk.diagnostics_changed(paths)  # no real client acts on a notification of this
            case _:
                assert_never(event)

    def _mention_problem(self, path: str) -> str | None:
        if not self.options.share_context:
            return "agents get no files: the companion was started with --no-context"
        if not can_be_sent(path):
            return f"{path!r} cannot be sent to agents: the name is not Unicode, or not absolute"
        if self.hidden.hides(path):
            return f"{path} is hidden from agents by its name, .geminiignore or .aiexclude; no agent was notified"
        return None

    def _is_visible(self, path: str) -> bool:
        return os.path.isfile(path) and not self.hidden.hides(path)  # noqa: PTH113 - often

    def _note_change(self) -> None:
        self.changes.add()
        self._tracker.changed(self._clock())
        self._dirty.set()

    async def _send_contexts(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            while (due := self._tracker.due) is not None:
                wait = due - self._clock()
                if wait > 0:
                    await asyncio.sleep(wait)
                    continue
                await self._refresh()

    async def _refresh(self) -> None:
        """Read the editor's state, and send it to all clients if it has changed."""
        reading = self._tracker.reading()
        try:
            files = await self._snapshot()
        except EditorGoneError:
            files = ()
        except EditorError:
            return  # a busy editor: the last context stays valid until the next change
        context = self._tracker.update(files, self.is_trusted, reading)
        if context is not None:
            if self._linters is not None:
                self._linters.look([file.path for file in context.files])
            for client in self.clients:
                client.context_changed(context)

    async def _snapshot(self) -> tuple[OpenFile, ...]:
        """Return the editor's open files, limited to what the options share with agents."""
        if not self.hidden.folders:
            await self.workspace_folders()
        files = await self.editor.open_files()
        self._disk.opened(file.path for file in sorted(files, key=lambda file: -file.focused_at))
        if not self.options.share_context:
            return ()
        self.hidden.opened(file.path for file in files)
        if not self.options.share_selection:
            return tuple(replace(file, selection=None) for file in files)
        selected = next((file for file in files if file.is_active and file.selection is not None), None)
        if selected is not None:
            self._latest_selection = selected
        return files


async def _no_diagnostics() -> tuple[Diagnostic, ...]:
    return ()
