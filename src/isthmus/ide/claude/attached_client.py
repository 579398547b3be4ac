"""Connection of one Claude CLI, from its upgrade to its end: a thin layer over the session and the MCP peer.

A waiting call blocks nothing: other messages are read meanwhile, and answered out of order.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.claude.bounded_connection import BoundedConnection
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.tools import call_tool
from isthmus.ide.companion import Companion
from isthmus.ide.editor import FileMentioned
from isthmus.ide.mcp import mcp_peer
from isthmus.rpc.messages import Notification, RequestId
from isthmus.runtime.first_wait import on_first_wait
from isthmus.runtime.running_tasks import RunningTasks

MESSAGES_IN_A_ROW = 16
"""Maximum number of messages read from one client in a row, before other clients."""
SETTLE_SECONDS = 0.6
"""Delay in seconds after ``initialized`` before a CLI can show mentions; the same as in claudecode.nvim."""
LAST_ANSWERS_SECONDS = 2.0

_log = logging.getLogger(__name__)


class AttachedClient:
    """One CLI from its upgrade to its end. ``missed`` returns the files mentioned shortly before it connected.

    One task reads at a time and runs the calls itself. Only if a call waits does another task continue reading, so that
    an immediate answer needs no additional task.
    """

    def __init__(
        self,
        companion: Companion,
        session: ClaudeSession,
        connection: BoundedConnection,
        missed: Callable[[], Sequence[FileMentioned]],
    ) -> None:
        self.session = session
        self._companion = companion
        self._connection = connection
        self._missed = missed
        self._is_attached = False
        self._reader: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        self._tasks = RunningTasks()
        self._calls: dict[RequestId, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Serve the CLI until one side closes; then close its views."""
        self._tasks.start(self._notify())
        self._read_on()
        try:
            await self._closed.wait()
        finally:
            self.session.connected = False
            # Detach first, so that typed text is kept; then end the tasks that wait for the views.
            await self._companion.detach(self.session.id)
            await self._tasks.cancel()

    async def finish_calls(self) -> None:
        """Close the CLI's views and send the last answers, because the companion ends."""
        await self._companion.queue.close_all(self.session.id)
        self.session.reject_waiting()
        if self._calls:
            await asyncio.wait(self._calls.values(), timeout=LAST_ANSWERS_SECONDS)

    def _read_on(self) -> None:
        self._reader = self._tasks.start(self._read())

    async def _read(self) -> None:
        """Read until the connection ends, or until another task reads because a call occupies this one."""
        try:
            while True:
                for _ in range(MESSAGES_IN_A_ROW):
                    data = await self._connection.recv()
                    if isinstance(data, bytes):
                        await self._connection.close(CloseCode.UNSUPPORTED_DATA, "expected MCP messages in text frames")
                    elif not await self._handle(data):
                        return
                await asyncio.sleep(0)
        except ConnectionClosed:
            self._closed.set()
        except Exception:
            _log.exception("a message of an agent could not be handled")
            self._closed.set()

    async def _handle(self, data: str) -> bool:
        """Handle a message, and return whether this task should continue reading."""
        self._companion.wire.received(self.session.title, data)
        received = self.session.peer.receive(data)
        match received:
            case mcp_peer.Reply(message):
                if not self._is_attached and self.session.peer.client is not None:
                    self._attach()
                await self._send(encode_ascii(message))
            case mcp_peer.CallTool():
                return await self._call(received)
            case mcp_peer.CancelCall(request_id):
                if (task := self._calls.get(request_id)) is not None:
                    task.cancel()
            case Notification():
                was_initialized = self.session.is_initialized
                self.session.notified(received)
                if self.session.is_initialized and not was_initialized:
                    self._tasks.start(self._welcome())
            case mcp_peer.Ignored():
                pass
            case _:
                assert_never(received)
        return True

    def _attach(self) -> None:
        self._is_attached = True
        self.session.active_at = time.monotonic()
        for mention in self._missed():
            self.session.mentioned(mention)
        self._companion.attach(self.session)

    async def _call(self, call: mcp_peer.CallTool) -> bool:
        self.session.active_at = time.monotonic()
        task = self._reader
        if task is None:
            return False
        self._calls[call.request_id] = task
        await on_first_wait(self._answer(call, task), self._read_on)
        return self._reader is task

    async def _answer(self, call: mcp_peer.CallTool, task: asyncio.Task[None]) -> None:
        result = mcp_peer.CallToolResult()
        try:
            result = await call_tool(self._companion, self.session, call)
        except Exception:
            _log.exception("%s failed", call.name)
            result = mcp_peer.CallToolResult.error(
                f"{call.name} failed inside the companion; see its log for the reason"
            )
        finally:
            message = None
            if self._calls.get(call.request_id) is task:  # otherwise it was cancelled, and another call may have its id
                del self._calls[call.request_id]
                message = self.session.peer.finish(call.request_id, result)
        if message is not None:
            await self._send(encode_ascii(message))

    async def _welcome(self) -> None:
        """Send the context as soon as the CLI accepts it, and again when it certainly listens."""
        self.session.context_changed(await self._companion.context())
        await asyncio.sleep(SETTLE_SECONDS)
        self.session.settle()

    async def _notify(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                await self.session.wake.wait()
                for data in self.session.take():
                    await self._send(data)

    async def _send(self, data: bytes) -> None:
        self._companion.wire.sent(self.session.title, data)
        await self._connection.send_text(data)
