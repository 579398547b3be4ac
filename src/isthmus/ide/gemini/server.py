"""Companion server for Gemini CLI and Qwen Code: combines socket, token, sessions and discovery files."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from isthmus.encoding.codec import JsonObject, from_json
from isthmus.errors import DecodeError
from isthmus.ide.agent_server import AgentServer
from isthmus.ide.companion import Companion
from isthmus.ide.discovery_file import announces
from isthmus.ide.gemini.discovery import DiscoveryFile, agent_variables, is_in_container
from isthmus.ide.gemini.http_gate import HttpGate
from isthmus.ide.gemini.http_transport import McpEndpoint
from isthmus.ide.gemini.qwen_lock import QwenLockFile
from isthmus.ide.gemini.session import SessionTable
from isthmus.ide.gemini.tools import offered_tools
from isthmus.ide.gemini.waiting import Proposal, UnsettledProposals
from isthmus.ide.mcp.mcp_peer import ClientInfo
from isthmus.ide.options import GeminiServerLimits
from isthmus.listeners.close_delimited import CloseDelimitedProtocol
from isthmus.listeners.http_server import HttpServer
from isthmus.network import loopback

if TYPE_CHECKING:
    from pathlib import Path

LOG_NAME = "the companion's HTTP server"
KEPT_CHARACTERS = 4 * 1024 * 1024
"""Maximum length of the saved decisions and proposals in characters: decisions first, then the oldest proposals.

They are written at each change, which blocks the event loop.
"""


class GeminiServer(AgentServer):
    """Server by which Gemini CLI and Qwen Code attach to a companion.

    ``clients_changed`` is called when the result of :meth:`saved_state` changes: the clients, or their proposals and
    decisions.
    """

    def __init__(
        self,
        companion: Companion,
        clients_changed: Callable[[], None],
        limits: GeminiServerLimits = GeminiServerLimits(),
    ) -> None:
        self._companion = companion
        self._limits = limits
        self._clients_changed = clients_changed
        self._identity = companion.editor.identity
        self._kept: JsonObject = {}

    @property
    def name(self) -> str:
        """Name of the protocol: ``gemini``."""
        return "gemini"

    @property
    @override
    def port(self) -> int:
        return self._port

    @property
    @override
    def discovery_files(self) -> tuple[str, ...]:
        return str(self._discovery.path), str(self._qwen_lock.path)

    async def start(self, former: JsonObject | None) -> bool:
        """Bind the previous port with its token and sessions, or otherwise any port with new ones."""
        again = loopback.rebind(former)
        self._listener, self._token = again or (loopback.bind(0), secrets.token_urlsafe(32))
        self._port = int(self._listener.getsockname()[1])
        restorable, unsettled = (_clients(former), _unsettled(former)) if again else ({}, {})
        # Distinguishes the event ids of this run from those of the previous one.
        epoch = f"{time.time_ns() // 1_000_000:x}"
        tools, limits = offered_tools(self._companion), self._limits
        self._sessions = SessionTable(epoch, restorable, time.monotonic, tools, unsettled, limits.lost_stream_seconds)
        self._discovery = DiscoveryFile(self._identity, self.port)
        self._qwen_lock = QwenLockFile(self._identity, self.port)
        self._announced: list[Path] = []
        gate = HttpGate(self._token, self.port)
        endpoint = McpEndpoint(self._companion, self._sessions, gate, self._report_changes, limits.keep_alive_seconds)
        self._server = HttpServer(
            endpoint, self._listener, name=LOG_NAME, protocol=CloseDelimitedProtocol, limits=limits
        )
        return again is not None

    @override
    async def serve(self) -> None:
        try:
            await self._server.run_until_stopped()
        finally:
            self._listener.close()

    @override
    async def listening(self) -> None:
        await self._server.listening.wait()

    @override
    def announce(self, folders: Sequence[str]) -> None:
        self._discovery.write(folders, self._token)
        self._announced = [self._discovery.path]
        with suppress(OSError):  # a read-only home folder: Gemini CLI still finds the companion
            self._qwen_lock.write(folders, self._token)
            self._announced.append(self._qwen_lock.path)

    @property
    @override
    def is_announced(self) -> bool:
        return bool(self._announced) and all(announces(path, self._token) for path in self._announced)

    @override
    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        return agent_variables(self.port, self._token, folders, self._identity.pid, in_container=is_in_container())

    def saved_state(self) -> JsonObject:
        """Return port, token, the sessions by id, and their proposals and decisions by session and file."""
        clients = {
            key: {"name": client.name, "version": client.version, "protocol_version": client.protocol_version}
            for key, client in self._sessions.clients().items()
        }
        waiting = {key: found for key, found in self._sessions.waiting().items() if key in clients}
        room = KEPT_CHARACTERS
        for found in waiting.values():
            for file_path, decision in tuple(found.decisions.items()):
                if len(decision.message) <= room:
                    room -= len(decision.message)
                else:
                    found.decisions.pop(file_path)
        reviews = self._companion.reviews
        for review in (*reviews.all(), *reviews.unanswered):
            if review.owner in clients and len(review.proposed) <= room:
                room -= len(review.proposed)
                proposal = Proposal(review.file_path, review.proposed)
                waiting.setdefault(review.owner, UnsettledProposals()).proposals[review.file_path] = proposal
        unsettled = {key: found.to_json() for key, found in waiting.items() if found}
        self._kept = {"port": self.port, "token": self._token, "sessions": clients, "waiting": unsettled}
        return self._kept

    @override
    async def housekeep(self) -> None:
        for session in self._sessions.newly_lost():
            await self._companion.detach(session.id)  # attached again if it reconnects
        for session in self._sessions.expired():
            self._sessions.remove(session.id)
            await self._companion.detach(session.id)
        self._report_changes()

    def _report_changes(self) -> None:
        """Report a change of :meth:`saved_state` since its last call, so that it is stored for the next run."""
        before = self._kept
        if self.saved_state() != before:
            self._clients_changed()

    @override
    def withdraw(self) -> None:
        self._discovery.remove()
        self._qwen_lock.remove()

    @override
    async def stop(self) -> None:
        self._server.stop()


def _clients(former: JsonObject | None) -> dict[str, ClientInfo]:
    """Return the sessions of the previous run; unreadable ones are left out."""
    found: dict[str, ClientInfo] = {}
    sessions = (former or {}).get("sessions")
    for session_id, value in cast("dict[str, Any]", sessions if isinstance(sessions, dict) else {}).items():
        with suppress(DecodeError):
            found[session_id] = from_json(ClientInfo, value)
    return found


def _unsettled(former: JsonObject | None) -> dict[str, UnsettledProposals]:
    """Return the proposals and decisions of the previous run by session; unreadable ones are left out."""
    found: dict[str, UnsettledProposals] = {}
    waiting = (former or {}).get("waiting")
    for session_id, value in cast("dict[str, Any]", waiting if isinstance(waiting, dict) else {}).items():
        with suppress(DecodeError):
            found[session_id] = UnsettledProposals.from_json(value)
    return found
