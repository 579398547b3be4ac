"""Connection to an IDE of the Claude IDE protocol that reconnects automatically, reading the lock files each time.

:mod:`isthmus.ide.claude.peer` exchanges context and reviews over it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from typing_extensions import override

from isthmus.ide.claude.client_wire import PositionBase, adapted, dialect_of, tool_name
from isthmus.ide.claude.connection import ClaudeConnection, ClaudeEndpoint
from isthmus.ide.clients.client_base import ClientBase, Deadlines, within
from isthmus.ide.clients.ide_client import IdeError
from isthmus.ide.editor import Capability
from isthmus.ide.ide_protocol import FoundIde, FoundIdes
from isthmus.ide.mcp.mcp_client import ToolOutcome
from isthmus.rpc.messages import Notification

FindIdes: TypeAlias = Callable[[Path, Mapping[str, str]], FoundIdes]

_TOOL_OF: Final[Mapping[Capability, str]] = {
    Capability.OPEN: "openFile",
    Capability.CLOSE: "getOpenEditors",  # the name of the tab; close_tab itself is not listed everywhere
    Capability.DIRTY: "checkDocumentDirty",
    Capability.DIAGNOSTICS: "getDiagnostics",
    Capability.SAVE: "saveDocument",
    Capability.EXECUTE: "executeCode",
}


class Link(ClientBase):
    """Permanent connection to an IDE: finds it, reconnects, and calls its tools."""

    protocol = "Claude Code IDE"

    def __init__(self, workspace: Path, environment: Mapping[str, str], find: FindIdes, deadlines: Deadlines) -> None:
        super().__init__(workspace, environment, deadlines)
        self._find = find
        self._ide: FoundIde | None = None
        self._connection: ClaudeConnection | None = None
        self._trying: ClaudeConnection | None = None
        """Connection that is opening, or the last one opened; the IDE may send notifications while it opens."""

    @property
    @override
    def ide_name(self) -> str:
        return self._ide.display_name if self._ide else "IDE"

    @property
    def ide(self) -> FoundIde | None:
        """Current or last connected IDE."""
        return self._ide

    @property
    @override
    def pid(self) -> int | None:
        return self._ide.pid if self._ide else None

    @property
    def can_review(self) -> bool:
        """Whether reviews can be shown; a server that does not list openDiff has it switched off."""
        return self.connected and Capability.DIFF in self.offers

    @property
    @override
    def offers(self) -> frozenset[Capability]:
        if self._connection is None:
            return frozenset()
        tools = self._connection.tools
        offered = {each for each, tool in _TOOL_OF.items() if tool_name(tool, tools) in tools}
        if not self._dialect.runs_python:
            offered.discard(Capability.EXECUTE)
        if not tools or tool_name("openDiff", tools) in tools:
            offered.add(Capability.DIFF)
        return frozenset(offered | {Capability.SELECTION})

    async def connect(self) -> None:
        """Find an IDE and connect to it.

        Raises:
            IdeError: no IDE was found, or none answers; the text lists the ones tried.
        """
        if self._follower is not None:
            return
        if not await self._connect_to_any():
            raise IdeError(self.problem or "no IDE found")
        self._follower = asyncio.create_task(self._follow(), name="claude ide peer")
        await self.refresh(self._deadlines.first_context)

    async def refresh(self, seconds: float) -> None:
        """Request information that the IDE does not send by itself, within ``seconds``."""

    async def _disconnect(self) -> None:
        self._connected.clear()
        if self._connection is not None:
            await self._connection.aclose()

    # Hooks for the subclass.

    def _notified(self, notification: Notification) -> None:
        """Handle a notification."""

    def _begun(self) -> None:
        """Prepare for the notifications of a new connection."""

    def _ended(self) -> None:
        """Handle the loss of the connection."""

    @property
    def _folders(self) -> tuple[str, ...]:
        return self._ide.folders if self._ide else ()

    @property
    def _dialect(self) -> PositionBase:
        return dialect_of(self._trying.server_name if self._trying is not None else "")

    async def _connect_to_any(self) -> bool:
        found = await asyncio.to_thread(self._find, self._workspace, self._environment)
        problems = [f"{rejected.source}: {rejected.reason}" for rejected in found.rejected]
        for ide in found.ides:
            endpoint = ClaudeEndpoint(ide.port, ide.token)
            connection = ClaudeConnection(endpoint, self._notified, self._notify, self._deadlines)
            self._trying = connection
            self._begun()
            try:
                await connection.open(self._deadlines.connect)
            except IdeError as error:
                problems.append(f"{ide.source}: {error}")
                await connection.aclose()
                continue
            except BaseException:
                await connection.aclose()
                raise
            self._ide, self._connection = ide, connection
            self._connected.set()
            self._notify()
            return True
        self.problem = "no IDE found" + "".join(f"; {problem}" for problem in problems)
        return False

    async def _follow(self) -> None:
        """Reconnect whenever the connection is lost, until cancelled; poll the open files while there are listeners."""
        delay = self._deadlines.retry_first
        while True:
            connection, since = self._connection, time.monotonic()
            assert connection is not None  # noqa: S101 - connected before
            while not await within(connection.lost.wait(), self._deadlines.poll):
                if self._listeners:
                    await self.refresh(self._deadlines.call)
            self._lose(connection)
            await connection.aclose()
            if time.monotonic() - since > self._deadlines.retry_last:
                delay = self._deadlines.retry_first
            while not await self._connect_to_any():
                await asyncio.sleep(delay)
                delay = min(delay * 2, self._deadlines.retry_last)
            await asyncio.sleep(delay)  # also pause for a server that accepts and closes the connection at once
            delay = min(delay * 2, self._deadlines.retry_last)
            await self.refresh(self._deadlines.call)

    def _lose(self, connection: ClaudeConnection) -> None:
        if connection is self._connection and self.connected:
            self.problem = f"the connection to {self.ide_name} was lost: {connection.reason}"
            self._connected.clear()
            self._ended()
            self._notify()

    async def _call(self, tool: str, arguments: Mapping[str, Any], seconds: float | None = None) -> ToolOutcome:
        """Call a tool that does not ask the user.

        Raises:
            IdeError: the IDE is not connected, or did not answer.
        """
        connection = await self._ready(self._deadlines.connect)
        adjusted = adapted(dict(arguments), self._arguments_of(tool))
        return await connection.call_tool(tool_name(tool, connection.tools), adjusted, seconds or self._deadlines.call)

    def _arguments_of(self, tool: str) -> frozenset[str]:
        """Return the names of a tool's arguments; empty if the server does not list it."""
        if self._connection is None:
            return frozenset()
        return self._connection.tools.get(tool_name(tool, self._connection.tools), frozenset())

    async def _ready(self, seconds: float) -> ClaudeConnection:
        if not await within(self._connected.wait(), seconds) or self._connection is None:
            raise IdeError(self.problem or "no IDE is connected")
        return self._connection

    async def _offered(self, capability: Capability, what: str) -> None:
        await self._ready(self._deadlines.connect)
        if capability not in self.offers:
            raise self._not_offered(what)
