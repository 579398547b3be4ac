"""The companion's server for spec 1 (Gemini CLI and its forks): socket, token, sessions and discovery files together.

An :class:`~isthmus.ide.agent_server.AgentServer`. What goes over the wire is in the modules beside this one.
"""

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from isthmus.codec import JsonObject, from_json
from isthmus.errors import DecodeError
from isthmus.ide.companion import Companion
from isthmus.ide.gemini.discovery import DiscoveryFile, agent_variables
from isthmus.ide.gemini.http_gate import Gate
from isthmus.ide.gemini.http_server import Server
from isthmus.ide.gemini.http_transport import McpEndpoint
from isthmus.ide.gemini.session import SessionTable
from isthmus.ide.mcp_peer import ClientInfo


class GeminiServer:
    """``clients_changed`` is called when a client came or went: what :meth:`life` says is another then."""

    def __init__(self, companion: Companion, clients_changed: Callable[[], None]) -> None:
        self._companion = companion
        self._clients_changed = clients_changed
        self._identity = companion.editor.identity

    @property
    def name(self) -> str:
        """``gemini``."""
        return "gemini"

    @property
    def port(self) -> int:
        """See the port."""
        return self._port

    @property
    def discovery_files(self) -> tuple[str, ...]:
        """See the port."""
        return (str(self._discovery.path),)

    async def start(self, former: JsonObject | None) -> bool:
        """Bind the former port, with its token and its sessions, else any other with new ones."""
        port, token = (former or {}).get("port"), (former or {}).get("token")
        again = isinstance(port, int) and isinstance(token, str) and self._bind(port)
        if not again:
            self._bind(0, required=True)
        self._port = int(self._listener.getsockname()[1])
        self._token = cast(str, token) if again else secrets.token_urlsafe(32)
        restorable = _clients(former) if again else {}
        # The epoch tells the event ids of this life from those of the one before.
        self._sessions = SessionTable(f"{time.time_ns() // 1_000_000:x}", restorable, time.monotonic)
        self._discovery = DiscoveryFile(self._identity, self.port)
        gate = Gate(self._token, self.port)
        endpoint = McpEndpoint(self._companion, self._sessions, gate, self._clients_changed)
        self._server = Server(endpoint, self._listener)
        return again

    async def serve(self) -> None:
        """See the port."""
        try:
            await self._server.run_until_stopped()
        finally:
            self._listener.close()

    async def listening(self) -> None:
        """See the port."""
        await self._server.listening.wait()

    def announce(self, folders: Sequence[str]) -> None:
        """See the port."""
        self._discovery.write(folders, self._token)

    @property
    def is_announced(self) -> bool:
        """See the port."""
        return self._discovery.path.exists()

    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        """See the port."""
        return agent_variables(self.port, self._token, folders, self._identity.pid)

    def life(self) -> JsonObject:
        """Port, token, and the sessions by id."""
        clients = {
            key: {"name": client.name, "version": client.version, "protocol_version": client.protocol_version}
            for key, client in self._sessions.clients().items()
        }
        return {"port": self.port, "token": self._token, "sessions": clients}

    async def housekeep(self) -> None:
        """See the port."""
        for session in self._sessions.gone():
            await self._companion.close_reviews(session.id)
        for session in self._sessions.expired():
            self._sessions.remove(session.id)
            await self._companion.detach(session.id)
            self._clients_changed()

    def withdraw(self) -> None:
        """See the port."""
        self._discovery.remove()

    async def stop(self) -> None:
        """See the port."""
        self._server.should_exit = True

    def _bind(self, port: int, *, required: bool = False) -> bool:
        # With the protocol named, asyncio turns Nagle's algorithm off; without it each answer waits 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            listener.close()
            if required:
                raise
            return False
        os.set_inheritable(listener.fileno(), False)
        self._listener = listener
        return True


def _clients(former: JsonObject | None) -> dict[str, ClientInfo]:
    """The sessions of the life before; unreadable ones are left out."""
    found: dict[str, ClientInfo] = {}
    sessions = (former or {}).get("sessions")
    for session_id, value in cast("dict[str, Any]", sessions if isinstance(sessions, dict) else {}).items():
        with suppress(DecodeError):
            found[session_id] = from_json(ClientInfo, value)
    return found
