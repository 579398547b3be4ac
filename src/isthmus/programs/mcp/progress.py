"""Notifications about the progress of a tool call to an MCP client, so that the client keeps a call that takes long."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.encoding.codec import JsonObject
from isthmus.events import AgentEvent, TaskState, ToolCallUpdate
from isthmus.rpc import messages as rpc
from isthmus.task_view import TaskView
from isthmus.text.visible import visible

BEAT_SECONDS = 10.0
"""Maximum time in seconds between two notifications while a task is at work.

The SDKs of MCP give a call up after 60 s without one, if they give it up at all.
"""
MAXIMUM_EVENTS = 1_000
"""Maximum number of notifications about events of one call. The regular ones go on without a limit."""
MAXIMUM_TEXT = 200
"""Maximum number of characters of one notification."""


class ClientProgress:
    """Notifications about the progress of a call, each a line of text. Without a token, none.

    ``send`` sends a message to the client. ``beat_seconds`` is the maximum time between two of them in
    :meth:`beating`.
    """

    def __init__(
        self,
        send: Callable[[JsonObject], Awaitable[None]],
        token: rpc.RequestId | None,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        self._send = send
        self._token = token
        self._beat_seconds = beat_seconds
        self._shown = set[str]()
        self._events = 0
        self._sent = 0
        self._news = asyncio.Event()

    async def event(self, event: AgentEvent) -> None:
        """Tell the client of a tool call that begins."""
        if not isinstance(event, ToolCallUpdate) or len(self._shown) >= MAXIMUM_EVENTS:
            return
        call = event.tool_call
        if call.status is not ToolCallStatus.EXECUTING or call.tool_call_id in self._shown:
            return
        self._shown.add(call.tool_call_id)
        await self.say(named(call))

    async def say(self, text: str) -> None:
        """Tell the client a line of text, unless it was told too many."""
        if self._events < MAXIMUM_EVENTS:
            self._events += 1
            await self._notify(text)

    @contextlib.asynccontextmanager
    async def beating(self, what: Callable[[], str]) -> AsyncGenerator[None]:
        """Tell the client the line that ``what`` returns whenever it was told nothing for the time of a beat."""
        beat = asyncio.create_task(self._beat(what)) if self._token is not None else None
        try:
            yield
        finally:
            if beat is not None:
                beat.cancel()
                await asyncio.gather(beat, return_exceptions=True)

    async def _beat(self, what: Callable[[], str]) -> None:
        while True:
            self._news.clear()
            try:
                async with asyncio.timeout(self._beat_seconds):
                    await self._news.wait()
            except TimeoutError:
                await self._notify(what())

    async def _notify(self, text: str) -> None:
        if self._token is None:
            return
        self._sent += 1
        self._news.set()
        params = {"progressToken": self._token, "progress": self._sent, "message": visible(text)[:MAXIMUM_TEXT]}
        with contextlib.suppress(OSError):
            await self._send(rpc.notification("notifications/progress", params))


def what_runs(view: TaskView) -> str:
    """Return in a line what a task is doing that has not ended: the calls that run, or what it waits for."""
    if view.state in (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED):
        return "waits for the user's answer"
    if view.state is TaskState.SUBMITTED:
        return "waits to begin"
    running = (item.call for item in view.calls.values() if item.call.status is ToolCallStatus.EXECUTING)
    return "; ".join(map(named, running)) or "thinking"


def named(call: ToolCall) -> str:
    """Return a call in a line: its tool, and its description if it has one."""
    return f"{call.tool_name}: {call.description or ''}".rstrip(": ")
