"""Companion server for the Claude IDE protocol: combines socket, token, clients and lock file."""

import asyncio
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.ide.agent_server import AgentServer
from isthmus.ide.claude.discovery.lock_file import LockFile, claude_variables
from isthmus.ide.claude.gate import UpgradeGate
from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.tools import offered_tools
from isthmus.ide.companion import Companion
from isthmus.ide.discovery_file import announces
from isthmus.ide.editor import FileMentioned
from isthmus.ide.options import ClaudeServerLimits
from isthmus.listeners.beginnings import http_beginning
from isthmus.listeners.connection_slot import ConnectionSlot, SlotProtocol
from isthmus.listeners.listener import Listener
from isthmus.listeners.logs import quiet_log
from isthmus.network import loopback

if TYPE_CHECKING:
    import socket

    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

    from isthmus.ide.claude.attached_client import AttachedClient

LOWEST_PORT, HIGHEST_PORT = 10_000, 65_535
PORT_ATTEMPTS = 100
LOG_NAME = "the companion's WebSocket server"
SUBPROTOCOL = "mcp"
KEPT_MENTION_SECONDS = 10.0
"""Maximum age in seconds of mentions that are sent to a newly connected CLI."""


class ClaudeServer(AgentServer):
    """Server by which Claude CLIs attach to a companion."""

    def __init__(self, companion: Companion, limits: ClaudeServerLimits = ClaudeServerLimits()) -> None:
        self._companion = companion
        self._limits = limits
        self._clients: set[AttachedClient] = set()
        self._tools = offered_tools(companion)
        self._left_at = -math.inf
        self._listening = asyncio.Event()
        self._stopping = asyncio.Event()

    @property
    def name(self) -> str:
        """Name of the protocol: ``claude``."""
        return "claude"

    @property
    @override
    def port(self) -> int:
        return self._port

    @property
    @override
    def discovery_files(self) -> tuple[str, ...]:
        return (str(self._lock_file.path),)

    async def start(self, former: JsonObject | None) -> bool:
        """Bind the previous port with its token, or otherwise a random port with a new token."""
        again = loopback.rebind(former)
        self._listener, self._token = again or (_bind_random(), str(uuid4()))
        self._port = int(self._listener.getsockname()[1])
        self._gate = UpgradeGate(self._token, self._port)
        self._lock_file = LockFile(self._companion.editor.identity, self._port)
        return again is not None

    @override
    async def serve(self) -> None:
        from websockets.asyncio.server import serve
        from websockets.server import ServerProtocol

        from isthmus.ide.claude.bounded_connection import BoundedConnection

        limits = self._limits
        living: set[BoundedConnection] = set()
        server = serve(
            self._attach,
            process_request=self._check,
            server_header=None,
            open_timeout=limits.head_seconds,
            logger=quiet_log(),
        )

        def make_connection(slot: ConnectionSlot) -> SlotProtocol:
            del slot  # the connection finds it itself
            protocol = ServerProtocol(
                select_subprotocol=lambda _, offered: next((name for name in offered if name == SUBPROTOCOL), None),
                max_size=limits.maximum_message_bytes,
                logger=quiet_log(),
            )
            return BoundedConnection(
                living,
                limits.maximum_unread_bytes,
                protocol,
                server,
                ping_interval=limits.ping_seconds,
                ping_timeout=limits.ping_seconds,
                close_timeout=limits.close_seconds,
                max_queue=(2, 0),
            )

        accepting = Listener(
            self._listener,
            make_connection,
            name=LOG_NAME,
            limits=limits,
            read_beginning=http_beginning,
        )
        server.server = accepting  # pyright: ignore[reportAttributeAccessIssue] - in place of asyncio's
        await accepting.start_serving()
        self._listening.set()
        await self._stopping.wait()
        await asyncio.gather(*(client.finish_calls() for client in self._clients), return_exceptions=True)
        server.close()
        await asyncio.sleep(0)  # it accepts no more connections
        for connection in tuple(living):
            connection.cut_off_unproven()
        await server.wait_closed()

    @override
    async def listening(self) -> None:
        await self._listening.wait()

    @override
    def announce(self, folders: Sequence[str]) -> None:
        self._lock_file.write(folders, self._token)

    @property
    @override
    def is_announced(self) -> bool:
        return announces(self._lock_file.path, self._token)

    @override
    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        return claude_variables(self.port)

    def saved_state(self) -> JsonObject:
        """Return port and token only: a CLI that reconnects starts a new session."""
        return {"port": self.port, "token": self._token}

    async def housekeep(self) -> None:
        """Report changed tools to the CLIs. Clients need no cleanup, because each ends with its connection."""
        tools = offered_tools(self._companion)
        if tools != self._tools:
            self._tools = tools
            for client in self._clients:
                client.session.offer(tools)

    @override
    def withdraw(self) -> None:
        self._lock_file.remove()

    async def stop(self) -> None:
        """Answer pending calls, and close every connection with the status "going away"."""
        self._stopping.set()

    async def _attach(self, connection: "ServerConnection") -> None:
        from isthmus.ide.claude.attached_client import AttachedClient
        from isthmus.ide.claude.bounded_connection import BoundedConnection

        assert isinstance(connection, BoundedConnection)  # noqa: S101 - by create_connection
        session = ClaudeSession(uuid4().hex, offered_tools(self._companion))
        client = AttachedClient(self._companion, session, connection, self._missed_mentions)
        self._clients.add(client)
        try:
            await client.run()
        finally:
            self._clients.discard(client)
            self._left_at = time.monotonic()

    def _missed_mentions(self) -> Sequence[FileMentioned]:
        """Return the recent mentions since the last CLI left; none if another CLI is attached."""
        if len(self._clients) > 1:
            return ()
        return self._companion.mentions.recent(min(KEPT_MENTION_SECONDS, time.monotonic() - self._left_at))

    def _check(self, connection: "ServerConnection", request: "Request") -> "Response | None":
        from isthmus.ide.claude.bounded_connection import BoundedConnection

        assert isinstance(connection, BoundedConnection)  # noqa: S101 - made by serve()
        refusal = self._gate.check(request.headers.get_all)
        if refusal is not None:
            return connection.respond(refusal.status, refusal.text)
        if connection.slot is not None:
            connection.slot.show_token()
        maximum = self._limits.maximum_clients
        if len(self._clients) >= maximum:
            return connection.respond(503, f"Too many agents: {maximum} are attached; end one first\n")
        return None


def _bind_random() -> "socket.socket":
    """Return a socket on any free port of the range that real editors use.

    Raises:
        OSError: 100 random ports were all taken.
    """
    for _ in range(PORT_ATTEMPTS - 1):
        with suppress(OSError):
            return loopback.bind(LOWEST_PORT + secrets.randbelow(HIGHEST_PORT - LOWEST_PORT + 1))
    return loopback.bind(LOWEST_PORT + secrets.randbelow(HIGHEST_PORT - LOWEST_PORT + 1))
