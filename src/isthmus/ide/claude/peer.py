"""Client of IDE extensions of the Claude IDE protocol, for our agent and the bridge: gets context, requests reviews.

After a reconnection, open reviews are shown again; if it takes too long, they fail, so that no caller waits for a
closed window. The caller writes files, and asks the user elsewhere at the same time. :mod:`link` connects, and
:mod:`client_wire` decodes the messages of servers.
"""

import asyncio
import base64
import binascii
import contextlib
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never

from typing_extensions import override

from isthmus.encoding.json_shapes import as_object
from isthmus.ide.claude.client_wire import (
    PositionBase,
    ReportedSelection,
    UnknownNotification,
    diagnostics_of,
    failure_of,
    folders_of,
    json_of,
    meaning,
    review_answer,
    selection_of,
    tabs_of,
    tool_name,
    trust_of,
)
from isthmus.ide.claude.connection import CallFailedError, ClaudeConnection, LostError
from isthmus.ide.claude.discovery.finding import find_ides
from isthmus.ide.claude.disk_text import is_written, unique_line
from isthmus.ide.claude.link import FindIdes, Link
from isthmus.ide.claude.seen import SeenFiles
from isthmus.ide.clients.asked_review import AskedReview, Outcome
from isthmus.ide.clients.client_base import DEADLINES, Deadlines, within
from isthmus.ide.clients.ide_client import IdeError, UndecidedError
from isthmus.ide.context import IdeContext
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Diagnostic,
    ExecutionImage,
    ExecutionOutput,
    ExecutionText,
    FileMentioned,
    OpenFile,
    Range,
)
from isthmus.ide.file_uri import file_uri
from isthmus.ide.mcp.mcp_client import ToolOutcome
from isthmus.ide.reviews.review import Accepted, Closed, Rejected
from isthmus.rpc.messages import Notification

_FILE_NOT_OPEN: Final = -32001
KEPT_LEFT = 20
"""Maximum number of ended reviews whose users can still be told that their decision came too late."""
LAST_WRITTEN_SECONDS = 0.3
"""Maximum wait in seconds for an accepted edit to be written before its view is closed, when we disconnect."""


@dataclass(slots=True)
class _Review:
    """An open review, with its view if it has one."""

    asked: AskedReview
    connection: ClaudeConnection | None = None
    tab_name: str = ""


class ClaudePeer(Link):
    """Connection to an IDE extension: an :class:`~isthmus.ide.clients.ide_client.IdeClient` for one event loop."""

    def __init__(
        self,
        workspace: Path,
        environment: Mapping[str, str],
        *,
        find: FindIdes = find_ides,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        super().__init__(workspace, environment, find, deadlines)
        self._seen = SeenFiles()
        self._has_context = False
        self._reviews: dict[str, _Review] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._left: deque[tuple[str, str]] = deque(maxlen=KEPT_LEFT)
        """Paths and tab names of the last reviews that have ended."""
        self._ending = asyncio.Event()

    def context(self) -> IdeContext | None:
        """Return the context from the last :meth:`refresh` and later events; None if unknown."""
        return self._seen.context() if self._has_context else None

    @override
    async def aclose(self) -> None:
        self.is_closed = True
        self._ending.set()
        await self._stop_following()
        if self._leaving:
            await asyncio.wait(tuple(self._leaving), timeout=self._deadlines.written)
        waiting = tuple(self._reviews.values())
        for review in waiting:  # first: the answer to openDiff that closing the view causes is not a decision
            review.asked.fail(IdeError("the connection to the IDE was closed"))
        await asyncio.gather(*map(self._close_view, waiting), return_exceptions=True)
        await self._tasks.cancel()
        await self._disconnect()

    async def refresh(self, seconds: float) -> None:
        """Request the open files, within ``seconds``, because servers do not report opened and closed tabs."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._tasks.start(self._ask_what_is_open())
        await asyncio.wait({self._refreshing}, timeout=seconds)

    async def _ask_what_is_open(self) -> None:
        connection = self._connection
        if connection is None or not self.connected:
            return
        before = self.context()
        tools = connection.tools
        with contextlib.suppress(IdeError):
            if not self._has_context and tool_name("getCurrentSelection", tools) in tools:
                selection = selection_of(
                    as_object(json_of(await self._call("getCurrentSelection", {}))), PositionBase()
                )
                if selection is not None:
                    self._seen.selected(selection, time.time())
            if tool_name("getOpenEditors", tools) in tools:
                tabs = tabs_of(await self._call("getOpenEditors", {}))
                if tabs is not None:
                    self._seen.listed(tabs, time.time())
                    self._has_context = True
            await self.workspace_folders()
        if self.context() != before:
            self._notify()

    def _notified(self, notification: Notification) -> None:
        received = meaning(notification, self._dialect, (*self._folders, str(self._workspace)))
        match received:
            case ReportedSelection():
                self._seen.selected(received, time.time())
                self._has_context = True
                if not self._seen.is_current and (self._refreshing is None or self._refreshing.done()):
                    self._refreshing = self._tasks.start(self._ask_what_is_open())
                self._notify()
            case FileMentioned():
                if Path(received.path).exists():
                    self._mentioned(received)
            case UnknownNotification(reason):
                self.problem = reason or self.problem
            case _:
                assert_never(received)

    def _begun(self) -> None:
        # Only messages of the new connection count, from the first one on.
        self._seen, self._has_context = SeenFiles(), False

    def _ended(self) -> None:
        self._has_context = False

    # Reviews

    @override
    async def open_diff(self, path: str, new_content: str, *, on_shown: Callable[[], None] = lambda: None) -> Outcome:
        if path in self._reviews:
            raise IdeError(f"{path}: a review of this file is open in {self.ide_name} already")
        review = self._reviews[path] = _Review(AskedReview(new_content))
        asking = self._tasks.start(self._ask(path, review))
        accepted: str | None = None
        try:
            outcome = await review.asked.outcome()
            accepted = outcome.content if isinstance(outcome, Accepted) else None
            return outcome
        finally:
            del self._reviews[path]
            self._left.append((path, review.tab_name))
            asking.cancel()
            review.asked.leave()
            leaving = self._tasks.start(self._leave_view(path, review, accepted))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    @override
    def answered_elsewhere(self, path: str, by: str) -> None:
        if (review := self._reviews.get(path)) is not None:
            review.asked.answered_by = by
        elif (tab_name := next((tab for left, tab in reversed(self._left) if left == path), "")) != "":
            self._tasks.start(self._tell_late(tab_name, by))

    async def close_diff(self, path: str) -> str | None:
        """Close the view of a review; return None, because this protocol does not report its text."""
        review = self._reviews.get(path)
        if review is None:
            return None
        review.asked.close(None)  # first: the answer to openDiff that follows is not a decision
        await self._close_view(review)
        return None

    async def _ask(self, path: str, review: _Review) -> None:
        """Show the review, again after each reconnection, until it is answered."""
        asked = review.asked
        while not asked.is_over:
            try:
                review.connection = connection = await self._ready(self._deadlines.lost)
                outcome = await self._show(path, review, connection)
            except LostError:
                if review.connection is not None:
                    self._lose(review.connection)
                continue
            except IdeError as error:
                asked.fail(IdeError(f"{self.ide_name} cannot show the diff: {error}"))
                return
            if (reason := failure_of(outcome)) is not None and outcome.is_error:
                asked.fail(IdeError(f"{self.ide_name} cannot show the diff: {reason}"))
                return
            match review_answer(outcome, asked.proposed):
                case Accepted(content):
                    asked.accept(content)
                case Rejected(reason=reason):
                    asked.reject(reason)
                case Closed() | None:
                    text = (outcome.text or "nothing")[:200]
                    asked.fail(UndecidedError(f"{self.ide_name} ended the review without a decision: {text}"))

    async def _show(self, path: str, review: _Review, connection: ClaudeConnection) -> ToolOutcome:
        if not self.can_review:
            raise self._not_offered("show diffs")
        review.tab_name = f"✻ [Isthmus] {Path(path).name} ({secrets.token_hex(3)}) ⧉"
        arguments = {
            "old_file_path": path,
            "new_file_path": path,
            "new_file_contents": review.asked.proposed,
            "tab_name": review.tab_name,
        }
        # The names do not depend on the schema, because the tool is called even if the server lists no tools.
        return await connection.call_tool(tool_name("openDiff", connection.tools), arguments, None)

    async def _leave_view(self, path: str, review: _Review, accepted: str | None) -> None:
        """Close the view; after an acceptance, first wait until the file is written, because editors then reload it."""
        if accepted is not None:
            await within(self._written_or_ending(path, accepted), self._deadlines.written)
        with contextlib.suppress(IdeError):
            await self._close_view(review)

    async def _written_or_ending(self, path: str, content: str) -> None:
        written, ending = asyncio.create_task(is_written(path, content)), asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({written, ending}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({written}, timeout=LAST_WRITTEN_SECONDS)
        finally:
            written.cancel()
            ending.cancel()

    async def _close_view(self, review: _Review) -> None:
        connection, review.connection = review.connection, None
        if connection is not None and review.tab_name and not connection.lost.is_set():
            name = tool_name("close_tab", connection.tools)
            closing = {"tab_name": review.tab_name}
            await connection.call_tool(name, closing, self._deadlines.close_diff, review.asked.answered_by)

    async def _tell_late(self, tab_name: str, by: str) -> None:
        with contextlib.suppress(IdeError):
            connection = await self._ready(self._deadlines.close_diff)
            closing = {"tab_name": tab_name}
            name = tool_name("close_tab", connection.tools)
            await connection.call_tool(name, closing, self._deadlines.close_diff, by)

    # Operations that only this protocol has.

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; ``at`` is sent as line numbers if the server accepts them, otherwise as the text of its line."""
        await self._offered(Capability.OPEN, "show a file")
        arguments: dict[str, Any] = {"filePath": path, "preview": False, "makeFrontmost": focus}
        known = self._arguments_of("openFile")
        if at is not None and "startLine" in known:
            arguments |= {"startLine": at.start.line + 1, "endLine": at.end.line + 1}
        elif at is not None and (text := await asyncio.to_thread(unique_line, path, at.start.line)) is not None:
            arguments["startText"] = text
        self._require_success(await self._call("openFile", arguments), f"show {path}")

    @override
    async def close_file(self, path: str) -> None:
        await self._offered(Capability.CLOSE, "close a file")
        await self.refresh(self._deadlines.call)
        if (label := self._seen.label_of(path)) is None:
            return
        self._require_success(await self._call("close_tab", {"tab_name": label}), f"close {path}")
        await self._ask_what_is_open()
        if self._seen.label_of(path) is not None:
            raise IdeError(f"{self.ide_name} keeps {path} open")

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        await self._ready(self._deadlines.connect)
        await self.refresh(self._deadlines.call)
        return self._seen.open_files()

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the workspace folders from the server's tool, or otherwise from the lock file."""
        connection = await self._ready(self._deadlines.connect)
        if tool_name("getWorkspaceFolders", connection.tools) in connection.tools:
            with contextlib.suppress(IdeError):
                outcome = await self._call("getWorkspaceFolders", {})
                self._seen.is_trusted = trust_of(outcome)
                if folders := folders_of(outcome):
                    return folders
        return self._folders

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        await self._offered(Capability.DIAGNOSTICS, "report its diagnostics")
        try:
            outcome = await self._call("getDiagnostics", {} if path is None else {"uri": file_uri(path)})
        except CallFailedError as error:
            if path is not None and error.code == _FILE_NOT_OPEN:
                return ()
            raise
        self._require_success(outcome, "report its diagnostics")
        found = diagnostics_of(outcome)
        if path is None:
            return found
        # Not every server can filter by file.
        return await asyncio.to_thread(_diagnostics_of_file, found, path)

    @override
    async def is_dirty(self, path: str) -> bool | None:
        await self._offered(Capability.DIRTY, "report unsaved changes")
        outcome = await self._call("checkDocumentDirty", {"filePath": path})
        if outcome.is_error:
            raise IdeError(f"{self.ide_name}: {failure_of(outcome)}")
        answer = as_object(json_of(outcome))
        # monet sends null for false.
        return None if answer.get("success") is False or "isDirty" not in answer else answer["isDirty"] is True

    @override
    async def save(self, path: str) -> None:
        await self._offered(Capability.SAVE, "save a file")
        self._require_success(await self._call("saveDocument", {"filePath": path}), f"save {path}")

    @override
    async def execute_code(self, code: str) -> CodeExecution:
        await self._offered(Capability.EXECUTE, "run code")
        connection = await self._ready(self._deadlines.connect)
        outcome = await connection.call_tool(tool_name("executeCode", connection.tools), {"code": code}, None)
        outputs = tuple(output for block in outcome.content if (output := _output(block)) is not None)
        return CodeExecution(outputs, outcome.is_error)

    def _require_success(self, outcome: ToolOutcome, what: str) -> None:
        if (reason := failure_of(outcome)) is not None:
            raise IdeError(f"{self.ide_name} could not {what}: {reason}")


def _diagnostics_of_file(found: tuple[Diagnostic, ...], path: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a file, under any path that leads to it."""
    paths = {each.path for each in found}
    real = os.path.realpath(path)
    same = {each for each in paths if each == path or os.path.realpath(each) == real}
    return tuple(each for each in found if each.path in same)


def _output(block: Mapping[str, Any]) -> ExecutionOutput | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return ExecutionText(text)
        case {"type": "image", "data": str(data), "mimeType": str(mime_type)}:
            try:
                return ExecutionImage(base64.b64decode(data, validate=True), mime_type)
            except binascii.Error:
                return None
        case _:
            return None
