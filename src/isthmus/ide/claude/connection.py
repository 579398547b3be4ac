"""WebSocket connection to an IDE in the Claude IDE protocol: a thin layer over :mod:`isthmus.ide.mcp.mcp_client`.

Each message is sent as one uncompressed, unfragmented text frame, and liveness is checked by WebSocket pings, because
real servers refuse or lack anything else. Only loopback, never through a proxy. A connection is used once;
:mod:`isthmus.ide.claude.link` makes a new one to reconnect.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import assert_never

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from isthmus import __version__
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.claude.gate import AUTHORIZATION
from isthmus.ide.clients.client_base import DEADLINES, Deadlines
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.mcp import mcp_client
from isthmus.ide.mcp.mcp_client import McpClient, ToolOutcome
from isthmus.listeners.logs import quiet_log
from isthmus.record import record
from isthmus.rpc import messages as rpc
from isthmus.rpc.pending import PendingRequests
from isthmus.rpc.wire_log import WireLog

MAXIMUM_MESSAGE_BYTES = 64 * 1024 * 1024
TOOLS_CHANGED = "notifications/tools/list_changed"

_WIRE = WireLog("IDE")

log = logging.getLogger(__name__)


class LostError(IdeError):
    """A call on a lost connection; it may succeed on a new one."""


class CallFailedError(IdeError):
    """A call that the server answered with a JSON-RPC error."""

    def __init__(self, text: str, code: int) -> None:
        self.code = code
        super().__init__(text)


@record
class ClaudeEndpoint:
    """Address of a server; without ``token``, the header is left out."""

    port: int
    token: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """URL of the server, always on this machine."""
        return f"ws://127.0.0.1:{self.port}"


class ClaudeConnection:
    """Session with a server. ``on_notification`` is called in order; it and ``on_tools`` must return at once."""

    def __init__(
        self,
        endpoint: ClaudeEndpoint,
        on_notification: Callable[[rpc.Notification], None],
        on_tools: Callable[[], None] = lambda: None,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        self.endpoint = endpoint
        self.tools: Mapping[str, frozenset[str]] = {}
        """Names of the listed tools, each with the names of its arguments."""
        self.lost = asyncio.Event()
        """Event that is set when either side has ended the connection; ``reason`` explains the end."""
        self.reason = "it was not made"
        self._on_notification = on_notification
        self._on_tools = on_tools
        self._deadlines = deadlines
        self._core = McpClient()
        self._socket: ClientConnection | None = None
        self._pending = PendingRequests()
        self._reader: asyncio.Task[None] | None = None
        self._listing: asyncio.Task[None] | None = None

    @property
    def server_name(self) -> str:
        """Name that the server reports."""
        return self._core.server_name

    async def open(self, seconds: float) -> None:
        """Connect, negotiate the protocol version, and list the tools.

        Raises:
            IdeError: no server listens, it refuses the token, or it is not a compatible MCP server.
        """
        headers = {AUTHORIZATION: self.endpoint.token} if self.endpoint.token else {}
        try:
            async with asyncio.timeout(seconds):
                self._socket = await connect(
                    self.endpoint.url,
                    additional_headers=headers,
                    subprotocols=[Subprotocol("mcp")],
                    compression=None,
                    proxy=None,
                    max_size=MAXIMUM_MESSAGE_BYTES,
                    open_timeout=None,
                    ping_interval=self._deadlines.ping,
                    ping_timeout=self._deadlines.pong,
                    close_timeout=1.0,
                    user_agent_header=f"isthmus/{__version__}",
                    logger=quiet_log(),
                )
                self._reader = asyncio.create_task(self._read(self._socket), name="ide socket")
                completed = self._core.initialized(await self._request(self._core.initialize()))
                if completed is None:
                    raise IdeError(f"{self.endpoint.url}: expected a known MCP protocol version")
                await self._send(completed)
                await self._send(rpc.notification("ide_connected", {"pid": os.getpid()}))
                await self._list_tools()
        except TimeoutError as error:
            raise IdeError(f"{self.endpoint.url}: no answer within {seconds:g} s") from error
        except InvalidStatus as error:
            status = error.response.status_code
            raise IdeError(f"{self.endpoint.url}: refused with {status}; the token is not the server's") from error
        except (OSError, WebSocketException) as error:
            raise IdeError(f"{self.endpoint.url}: {str(error) or type(error).__name__}") from error

    async def call_tool(
        self, name: str, arguments: JsonObject, seconds: float | None, answered_by: str = ""
    ) -> ToolOutcome:
        """Call a tool, within ``seconds``; without a deadline if None.

        A call that closes a view may say who answered its question elsewhere.

        Raises:
            LostError: the connection was lost.
            CallFailedError: the server answered with an error.
            IdeError: the server did not answer in time.
        """
        request = self._core.call_tool(name, arguments, answered_by)
        try:
            async with asyncio.timeout(seconds):
                return mcp_client.tool_outcome(await self._request(request))
        except TimeoutError as error:
            raise IdeError(f"no answer to {name} within {seconds or 0:g} s") from error

    async def aclose(self) -> None:
        """Disconnect; pending calls fail with :class:`LostError`."""
        tasks = [task for task in (self._listing, self._reader) if task is not None]
        if self._socket is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._socket.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._lose("it was closed")

    async def _list_tools(self) -> None:
        try:
            self.tools = mcp_client.tool_arguments(await self._request(self._core.request("tools/list", {})))
        except CallFailedError as error:
            if error.code != rpc.METHOD_NOT_FOUND:
                raise
            self.tools = {}

    async def _list_again(self) -> None:
        with contextlib.suppress(IdeError, TimeoutError):
            async with asyncio.timeout(10.0):
                await self._list_tools()
            self._on_tools()

    async def _request(self, message: rpc.JsonMessage) -> JsonObject:
        return await self._pending.wait(message["id"], message["method"], None, lambda: self._send(message))

    async def _send(self, message: rpc.JsonMessage) -> None:
        if self._socket is None or self.lost.is_set():
            raise LostError(f"the connection was lost: {self.reason}")
        text = encode_ascii(message).decode()
        _WIRE.sent("message", text)
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise LostError(f"the connection was lost: {error}") from error

    async def _read(self, socket: ClientConnection) -> None:
        reason = "the IDE closed it"
        try:
            async for data in socket:
                _WIRE.received("message", data)
                for incoming in mcp_client.receive(data):
                    await self._take(incoming)
        except ConnectionClosed as error:
            reason = str(error)
        except LostError as error:
            reason = str(error)
        finally:
            self._lose(reason)

    async def _take(self, incoming: rpc.Message) -> None:
        match incoming:
            case rpc.Response(number, result):
                self._pending.resolve(number, result)
            case rpc.ErrorResponse(number, code, text, data):
                # Some servers put the only useful text into the data.
                text = f"{text}: {data}" if data and isinstance(data, str) else text
                self._pending.fail(number, CallFailedError(text, code))
            case rpc.Notification(method):
                if method == TOOLS_CHANGED and (self._listing is None or self._listing.done()):
                    self._listing = asyncio.create_task(self._list_again())
                self._on_notification(incoming)
            case rpc.Request():
                await self._send(mcp_client.answer(incoming))
            case rpc.ParseError(text=problem):
                log.debug("%s sent an unreadable message: %s", self.endpoint.url, problem)
            case _:
                assert_never(incoming)

    def _lose(self, reason: str) -> None:
        if self.lost.is_set():
            return
        self.reason = reason
        self.lost.set()
        self._pending.fail_all(lambda: LostError(f"the connection was lost: {reason}"))
