"""The connections to the servers that clients bring in their AgentSettings.

A server at a URL is connected for one segment of a task. A program goes on from one turn of a session to the next,
since it may hold a state; programs of the sessions that were used least recently are ended.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from isthmus.development_tool import McpServerSettings
from isthmus.encoding.codec import to_json
from isthmus.mcp_host.config.client_servers import client_config
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.tools.port.tool_set import ToolScope

MAXIMUM_SESSIONS = 8
"""Maximum number of sessions without a running turn whose programs go on."""


class ClientConnections:
    """The connections of all sessions. ``context_of`` returns the context of a server in a workspace."""

    def __init__(self, context_of: Callable[[McpServerSettings, Path], ConnectionContext]) -> None:
        self._context_of = context_of
        self._by_url: dict[tuple[str, str], list[ServerConnection]] = {}
        self._programs: dict[tuple[str, str], dict[str, ServerConnection]] = {}
        """Programs by user and session: users choose the ids of their sessions, and may choose the same one."""
        self._working: dict[tuple[str, str], Sequence[ServerConnection]] = {}
        self._sessions: dict[tuple[str, str], tuple[str, str]] = {}
        """User and session of each segment that works."""

    def of(self, scope: ToolScope) -> Sequence[ServerConnection] | None:
        """Return the connections of a segment that works; None if it does not."""
        return self._working.get(_key(scope))

    async def begin(self, scope: ToolScope, workspace: Path) -> Sequence[ServerConnection]:
        """Connect a segment to its client's own servers."""
        key = _key(scope)
        if not any(server.is_own for server in scope.mcp_servers):
            return ()
        before = self._by_url.get(key)
        if before is not None and any(connection.asking.is_busy for connection in before):
            return self._working[key]  # One of their calls is running and may wait for the user.
        await _close(self._by_url.pop(key, ()))
        programs = await self._of_session(scope, workspace)
        new = [self._connect(server, workspace) for server in scope.mcp_servers if server.url is not None]
        self._by_url[key] = new
        self._working[key] = connections = [*programs, *new]
        self._sessions[key] = (scope.user, scope.context_id)
        return connections

    async def end(self, scope: ToolScope) -> None:
        """Close what was connected for this segment alone, which has ended."""
        self._working.pop(_key(scope), None)
        self._sessions.pop(_key(scope), None)
        await _close(self._by_url.pop(_key(scope), ()))

    async def aclose(self) -> None:
        """Close all connections."""
        programs = [connection for found in self._programs.values() for connection in found.values()]
        urls = [connection for found in self._by_url.values() for connection in found]
        self._programs, self._by_url, self._working, self._sessions = {}, {}, {}, {}
        await _close([*programs, *urls])

    async def _of_session(self, scope: ToolScope, workspace: Path) -> Sequence[ServerConnection]:
        """Return the connections to a session's programs; end those that its client no longer names."""
        wanted = {_identity(server): server for server in scope.mcp_servers if server.command is not None}
        session = (scope.user, scope.context_id)
        before = self._programs.pop(session, {})
        await _close([connection for identity, connection in before.items() if identity not in wanted])
        found = {
            identity: before.get(identity) or self._connect(server, workspace) for identity, server in wanted.items()
        }
        for connection in found.values():
            connection.try_again()
        if found:
            self._programs[session] = found  # the most recently used one is last
        working = {*self._sessions.values(), session}
        idle = [each for each in self._programs if each not in working]
        for each in idle[: max(0, len(self._programs) - MAXIMUM_SESSIONS)]:
            await _close(list(self._programs.pop(each).values()))
        return list(found.values())

    def _connect(self, server: McpServerSettings, workspace: Path) -> ServerConnection:
        connection = ServerConnection(client_config(server, workspace), self._context_of(server, workspace))
        connection.start()
        return connection


def _identity(server: McpServerSettings) -> str:
    """Return a text that is the same for the same program, arguments and variables."""
    return json.dumps(to_json(server), sort_keys=True)


def _key(scope: ToolScope) -> tuple[str, str]:
    return scope.context_id, scope.task_id


async def _close(connections: Sequence[ServerConnection]) -> None:
    await asyncio.gather(*(connection.aclose() for connection in connections))
