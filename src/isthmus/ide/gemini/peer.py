"""Client of IDE companions of the Gemini CLI protocol, for our agent: receives context, requests reviews.

A lost connection is restored automatically, together with the open reviews; if that takes too long, the reviews fail,
so that no caller waits for a closed window. The caller writes files, and asks the user elsewhere at the same time. The
MCP SDK is not used.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.ide.clients.asked_review import AskedReview, Outcome
from isthmus.ide.clients.client_base import DEADLINES, ClientBase, Deadlines, within
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.context import IdeContext, open_files_of
from isthmus.ide.editor import Capability, OpenFile
from isthmus.ide.gemini.client_wire import (
    ContextUpdated,
    ReviewAccepted,
    ReviewRejected,
    UnknownNotification,
    closed_content,
    meaning,
)
from isthmus.ide.gemini.finding import find_companions
from isthmus.ide.ide_protocol import FoundIde, FoundIdes
from isthmus.ide.mcp.mcp_client import ToolOutcome
from isthmus.ide.mcp.tool_names import CLOSE_DIFF, OPEN_DIFF
from isthmus.ide.reviews.review import Rejected
from isthmus.rpc.messages import Notification

if TYPE_CHECKING:
    from isthmus.ide.gemini.mcp_http import McpConnection, StreamEnd


class GeminiPeer(ClientBase):
    """Connection to a companion: an :class:`~isthmus.ide.clients.ide_client.IdeClient` for one event loop."""

    protocol = "Gemini CLI companion"

    def __init__(
        self,
        workspace: Path,
        environment: Mapping[str, str],
        *,
        find: Callable[[Path, Mapping[str, str]], FoundIdes] = find_companions,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        super().__init__(workspace, environment, deadlines)
        self._find = find
        self._companion: FoundIde | None = None
        self._connection: McpConnection | None = None
        self._tools: frozenset[str] = frozenset()
        self._context: IdeContext | None = None
        self._reviews: dict[str, AskedReview] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._has_context = asyncio.Event()
        self._session_ended = asyncio.Event()
        self._restarted = False
        self._lost_since: float | None = None

    @property
    def ide_name(self) -> str:
        """Name that the IDE reports ("Neovim"); "IDE" if it reports none."""
        return self._companion.display_name if self._companion else "IDE"

    @property
    def companion(self) -> FoundIde | None:
        """Current or last connected companion."""
        return self._companion

    @property
    def can_review(self) -> bool:
        """Whether the companion is connected and shows diffs; some companions only send the context."""
        return self.connected and {OPEN_DIFF, CLOSE_DIFF} <= self._tools

    @property
    @override
    def pid(self) -> int | None:
        return self._companion.pid if self._companion else None

    @property
    @override
    def offers(self) -> frozenset[Capability]:
        if self._connection is None:
            return frozenset()
        shows_diffs = {OPEN_DIFF, CLOSE_DIFF} <= self._tools
        return frozenset({Capability.SELECTION, Capability.DIFF} if shows_diffs else {Capability.SELECTION})

    def context(self) -> IdeContext | None:
        """Return the user's context, sorted and limited as the protocol requires; None if unknown."""
        return self._context

    async def refresh(self, seconds: float) -> None:
        """Do nothing: companions of this protocol send every change by themselves."""

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the open files of the last context."""
        if not self.connected:
            raise IdeError(self.problem or "no IDE is connected")
        return open_files_of(self._context) if self._context is not None else ()

    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the folders of the discovery file."""
        return self._companion.folders if self._companion is not None else ()

    async def connect(self) -> None:
        """Find a companion and connect to it; wait a moment for its first context.

        Raises:
            IdeError: no companion was found, or none answers; the text lists the ones tried.
        """
        if self._follower is not None:
            return
        if not await self._connect_to_any():
            raise IdeError(self.problem or "no IDE companion found")
        self._follower = asyncio.create_task(self._follow(), name="ide peer")
        if not await within(self._connected.wait(), self._deadlines.connect):
            raise IdeError(f"{self.ide_name} does not open its stream of notifications")
        await within(self._has_context.wait(), self._deadlines.first_context)

    async def open_diff(self, path: str, new_content: str, *, on_shown: Callable[[], None] = lambda: None) -> Outcome:
        """Let the user review new content of the file ``path`` (absolute), and wait for the decision.

        There is no deadline for the user. Cancelling closes the view. ``on_shown`` is called when it is visible.

        Raises:
            IdeError: the view cannot be shown, the file already has a review, or the connection is lost.
        """
        if path in self._reviews:
            raise IdeError(f"{path}: a review of this file is open in {self.ide_name} already")
        review = self._reviews[path] = AskedReview(new_content)
        shown = False
        try:
            if (closing := self._closing.pop(path, None)) is not None:
                await asyncio.wait({closing})  # otherwise it would close the new view
            shown = True
            arguments = {"filePath": path, "newContent": new_content}
            opened = await self._call(OPEN_DIFF, arguments, self._deadlines.open_diff)
            if opened.is_error and not review.is_over:
                shown = False
                raise IdeError(f"{self.ide_name} cannot show the diff: {opened.text or 'no reason given'}")
            review.is_shown = True
            on_shown()
            return await review.outcome()
        finally:
            del self._reviews[path]
            if (review.leave() or review.answered_by) and shown:
                self._closing[path] = self._tasks.start(self._close_view(path, review.answered_by))

    @override
    def answered_elsewhere(self, path: str, by: str) -> None:
        if (review := self._reviews.get(path)) is not None:
            review.answered_by = by
        else:
            self._tasks.start(self._close_view(path, by))

    async def close_diff(self, path: str) -> str | None:
        """Withdraw a review and return the text in its view, with the user's edits; None if not reported.

        The waiting call of :meth:`open_diff` returns ``Closed``.

        Raises:
            IdeError: the connection is lost.
        """
        review = self._reviews.get(path)
        arguments = {"filePath": path, "suppressNotification": True}
        content = closed_content(await self._call(CLOSE_DIFF, arguments, self._deadlines.close_diff))
        if review is not None:
            if (decided := review.decided) is not None:
                return content if isinstance(decided, Rejected) else decided.content
            review.close(content)
        return content

    async def aclose(self) -> None:
        """Close the open views and disconnect; open reviews fail with :class:`IdeError`."""
        self.is_closed = True
        await self._stop_following()
        if self.connected:
            closing = [asyncio.create_task(self._close_view(path)) for path in self._reviews]
            if closing:
                await asyncio.wait(closing)
        self._fail_reviews("the connection to the IDE was closed")
        await self._tasks.end(self._deadlines.close_diff)
        self._connected.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    # Connecting.

    async def _connect_to_any(self) -> bool:
        """Begin a new session with the best companion that answers."""
        found = await asyncio.to_thread(self._find, self._workspace, self._environment)
        problems = [f"{rejected.source}: {rejected.reason}" for rejected in found.rejected]
        for companion in found.ides:
            from isthmus.ide.gemini.mcp_http import (  # loads httpx2 only if there is an IDE
                GeminiEndpoint,
                McpConnection,
                McpError,
            )

            connection = McpConnection(
                GeminiEndpoint(companion.port, companion.token, remote=companion.remote), self._notified
            )
            try:
                await connection.initialize(self._deadlines.connect)
                tools = await connection.tool_names(self._deadlines.connect)
            except McpError as error:
                problems.append(str(error))
                await connection.aclose()
                continue
            except BaseException:
                await connection.aclose()
                raise
            former, self._connection = self._connection, connection
            self._companion, self._tools = companion, tools
            self._session_ended.clear()
            if former is not None:
                self._tasks.start(former.aclose())
            return True
        self.problem = "no IDE companion found" + "".join(f"; {problem}" for problem in problems)
        return False

    async def _follow(self) -> None:
        """Keep the stream of notifications open until cancelled."""
        from isthmus.ide.gemini.mcp_http import StreamEnd

        delay = self._deadlines.retry_first
        while True:
            end = await self._listen()
            had_been_open = self._lost_since is None
            if had_been_open:
                delay = self._deadlines.retry_first
            match end:
                case StreamEnd.ENDED | StreamEnd.BROKEN:
                    self._lose(end)
                case StreamEnd.UNREACHABLE | StreamEnd.SESSION_ENDED:
                    self._lose(end)
                    self._restarted = True
                    if await self._connect_to_any() and had_been_open:
                        continue
                case StreamEnd.NOT_OFFERED:
                    self._opened()
                    await self._session_ended.wait()
                    self._lose(end)
                    await self._connect_to_any()
                case _:
                    assert_never(end)
            if self._lost_since is not None and time.monotonic() - self._lost_since > self._deadlines.lost:
                self._fail_reviews(f"the connection to {self.ide_name} was lost")
            await asyncio.sleep(delay)
            delay = min(delay * 2, self._deadlines.retry_last)

    async def _listen(self) -> "StreamEnd":
        from isthmus.ide.gemini.mcp_http import StreamEnd

        assert self._connection is not None  # noqa: S101 - set before the first call
        listening = asyncio.create_task(self._connection.listen(self._opened))
        ended = asyncio.create_task(self._session_ended.wait())
        try:
            await asyncio.wait([listening, ended], return_when=asyncio.FIRST_COMPLETED)
            return listening.result() if listening.done() else StreamEnd.SESSION_ENDED
        finally:
            for task in (listening, ended):
                task.cancel()
            await asyncio.gather(listening, ended, return_exceptions=True)

    def _opened(self) -> None:
        self._lost_since = None
        self._connected.set()
        if self._restarted:
            self._restarted = False
            for path, review in self._reviews.items():
                if review.is_shown:
                    self._tasks.start(self._show_again(path, review))
        self._notify()

    def _lose(self, end: "StreamEnd") -> None:
        if self._lost_since is None:
            self._lost_since = time.monotonic()
            self.problem = f"the connection to {self.ide_name} was lost: {end.value}"
        self._disconnect()

    def _disconnect(self) -> None:
        if self.connected:
            self._connected.clear()
            self._has_context.clear()
            self._context = None
            self._notify()

    async def _show_again(self, path: str, review: AskedReview) -> None:
        """Show an open review again, because a restarted companion does not know it."""
        arguments = {"filePath": path, "newContent": review.proposed}
        try:
            opened = await self._call(OPEN_DIFF, arguments, self._deadlines.open_diff)
            problem = f"{self.ide_name} cannot show the diff: {opened.text}" if opened.is_error else None
        except IdeError as error:
            problem = str(error)
        if problem is not None:
            review.fail(IdeError(problem))

    # Calls and notifications.

    async def _call(self, tool: str, arguments: JsonObject, timeout: float, answered_by: str = "") -> ToolOutcome:
        from isthmus.ide.gemini.mcp_http import McpError, ServerUnreachableError, SessionEndedError

        for attempt in (1, 2):
            if self._connection is None or not await self._is_connected():
                raise IdeError(self.problem or "no IDE is connected")
            try:
                return await self._connection.call_tool(tool, arguments, timeout, answered_by)
            except (SessionEndedError, ServerUnreachableError) as error:
                self._disconnect()
                self._session_ended.set()  # the follower begins a new session; both tools can safely be repeated
                if attempt == 2:
                    raise IdeError(str(error)) from error
            except McpError as error:
                raise IdeError(str(error)) from error
        raise AssertionError("unreachable")

    async def _is_connected(self) -> bool:
        """Return whether the connection is open, after waiting for a reconnection unless :meth:`aclose` was called."""
        if not self.connected and self._follower is not None:
            connected = asyncio.create_task(self._connected.wait())
            try:
                either = (connected, self._follower)
                await asyncio.wait(either, timeout=self._deadlines.connect, return_when=asyncio.FIRST_COMPLETED)
            finally:
                connected.cancel()
        return self.connected

    async def _close_view(self, path: str, answered_by: str = "") -> None:
        arguments = {"filePath": path, "suppressNotification": True}
        with contextlib.suppress(IdeError):
            await self._call(CLOSE_DIFF, arguments, self._deadlines.close_diff, answered_by)

    def _notified(self, notification: Notification) -> None:
        received = meaning(notification)
        match received:
            case ContextUpdated(context):
                self._context = context
                self._has_context.set()
                self._notify()
            case ReviewAccepted(path, content):
                if (review := self._reviews.get(path)) is not None:
                    review.accept(content)
            case ReviewRejected(path, reason):
                if (review := self._reviews.get(path)) is not None:
                    review.reject(reason)
            case UnknownNotification(reason):
                self.problem = reason or self.problem
            case _:
                assert_never(received)

    def _fail_reviews(self, reason: str) -> None:
        for review in self._reviews.values():
            review.fail(IdeError(reason))
