"""WebSockets for Claude CLIs: a thin shell over the gate, the session and the MCP peer.

Every call is a task of its own, so that an openDiff that waits for the person holds up nothing. What a client may cost
is bounded: message and queue sizes, calls, connections, and what is written but not read.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from isthmus.ide import mcp_peer
from isthmus.ide.claude.session import Session
from isthmus.ide.claude.tools import call_tool
from isthmus.ide.companion import Companion
from isthmus.ide.editor import FileMentioned

MAXIMUM_CONNECTIONS = 256
"""Also of those that have not yet said who they are."""
MAXIMUM_MESSAGE_BYTES = 32 * 1024 * 1024
MAXIMUM_UNREAD_BYTES = 64 * 1024 * 1024
"""That a client lets pile up before its connection is cut."""
MESSAGES_IN_A_ROW = 16
"""Of one client, before others have their turn."""
SETTLE_SECONDS = 0.6
"""After this a CLI that said it is initialized shows mentions; claudecode.nvim waits as long."""
LAST_ANSWERS_SECONDS = 2.0

_log = logging.getLogger(__name__)


class BoundedConnection(ServerConnection):
    """Cut when there are too many, or when the client does not read what it makes us write."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection came in."""
        super().connection_made(transport)
        if len(self.server.handler_tasks) > MAXIMUM_CONNECTIONS:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Frames came; pings among them are answered without flow control."""
        super().data_received(data)
        self.limit_unread()

    def limit_unread(self) -> None:
        """Cut the connection if too much waits to be read by the client."""
        if self.transport.get_write_buffer_size() > MAXIMUM_UNREAD_BYTES:
            _log.warning("an agent that does not read was cut off: %d MiB were waiting", MAXIMUM_UNREAD_BYTES >> 20)
            self.transport.abort()


class AttachedClient:
    """One CLI from its upgrade to its end. ``missed`` gives what was mentioned shortly before it came."""

    def __init__(
        self,
        companion: Companion,
        session: Session,
        connection: BoundedConnection,
        missed: Callable[[], Sequence[FileMentioned]],
    ) -> None:
        self.session = session
        self._companion = companion
        self._connection = connection
        self._missed = missed
        self._is_attached = False
        self._calls: dict[mcp_peer.RequestId, asyncio.Task[None]] = {}
        self._background: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Serve it until one side closes; then its views are closed."""
        self._background.append(asyncio.create_task(self._notify()))
        try:
            with suppress(ConnectionClosed):
                await self._read()
        finally:
            self.session.connected = False
            # First the views, so that what the person typed is kept; then who waits for them.
            await self._companion.detach(self.session.id)
            tasks = [*self._background, *self._calls.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def finish_calls(self) -> None:
        """Close its views and give the last answers: the companion ends."""
        await self._companion.close_reviews(self.session.id)
        self.session.reject_waiting()
        if self._calls:
            await asyncio.wait(self._calls.values(), timeout=LAST_ANSWERS_SECONDS)

    async def _read(self) -> None:
        while True:
            for _ in range(MESSAGES_IN_A_ROW):
                data = await self._connection.recv()
                if isinstance(data, bytes):
                    await self._connection.close(CloseCode.UNSUPPORTED_DATA, "expected MCP messages in text frames")
                    return
                await self._received(data)
            await asyncio.sleep(0)

    async def _received(self, data: str) -> None:
        received = self.session.peer.receive(data)
        match received:
            case mcp_peer.Reply(message):
                if not self._is_attached and self.session.peer.client is not None:
                    self._attach()
                await self._send(mcp_peer.encode(message))
            case mcp_peer.CallTool(request_id):
                self._calls[request_id] = asyncio.create_task(self._call(received))
            case mcp_peer.CancelCall(request_id):
                if (task := self._calls.get(request_id)) is not None:
                    task.cancel()
            case mcp_peer.Notified():
                was_initialized = self.session.is_initialized
                self.session.notified(received)
                if self.session.is_initialized and not was_initialized:
                    self._background.append(asyncio.create_task(self._welcome()))
            case mcp_peer.Ignored():
                pass
            case _:
                assert_never(received)

    def _attach(self) -> None:
        self._is_attached = True
        for mention in self._missed():
            self.session.mentioned(mention)
        self._companion.attach(self.session)

    async def _call(self, call: mcp_peer.CallTool) -> None:
        try:
            result = await call_tool(self._companion, self.session, call)
        except asyncio.CancelledError:
            result = mcp_peer.ToolResult()  # forgotten by the peer: nothing is sent
        except Exception:
            _log.exception("%s failed", call.name)
            result = mcp_peer.ToolResult.error(f"{call.name} failed inside the companion; its log says why")
        self._calls.pop(call.request_id, None)
        if (message := self.session.peer.finish(call.request_id, result)) is not None:
            with suppress(ConnectionClosed):
                await self._send(mcp_peer.encode(message))

    async def _welcome(self) -> None:
        """What the person looks at, as soon as the CLI may be told, and once more when it listens for sure."""
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
        self._connection.limit_unread()
        await self._connection.send(data, text=True)
