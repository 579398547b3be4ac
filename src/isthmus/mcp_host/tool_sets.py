"""The tool sets of sessions: the agent's own tools and the servers' tools. They are rebuilt when a catalogue changes.

Not here: the choice of a session's servers, and waiting for them, see :mod:`isthmus.mcp_host.host`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from isthmus.mcp_host.catalogue.catalogue import Catalogue
from isthmus.mcp_host.catalogue.tool_names import assign_names
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.resource_tools import resource_tools
from isthmus.mcp_host.tool import McpTool
from isthmus.mcp_host.workspace_servers import WorkspaceServers, server_tools
from isthmus.tools.port.tool_set import ToolSet

if TYPE_CHECKING:
    from isthmus.tools.port.base import Tool

Key: TypeAlias = tuple[str, str]
"""A session and its task."""
_Catalogues: TypeAlias = tuple[tuple[ServerConnection, Catalogue], ...]


class ToolSets:
    """The tool sets of the running sessions. ``reserved`` are names that no server's tool gets."""

    def __init__(self, own: ToolSet, reserved: Collection[str]) -> None:
        self._own = own
        self._reserved = reserved
        self._last: dict[Key, tuple[_Catalogues, ToolSet]] = {}

    def forget(self, key: Key) -> None:
        """Forget a session that has ended."""
        self._last.pop(key, None)

    def of(
        self,
        key: Key,
        servers: WorkspaceServers,
        connections: Sequence[ServerConnection],
        clients: Sequence[ServerConnection],
        names: Collection[str] | None = None,
    ) -> ToolSet:
        """Return the tools of these connections: the same object as before if their catalogues are the same.

        `clients` are connections of this session only. `names` are the configured servers that it uses; None for all.
        """
        catalogues: _Catalogues = tuple((found, found.catalogue) for found in (*connections, *clients))
        before, made = self._last.get(key, ((), None))
        missing = tuple(found.name for found in servers.missing(names))
        if made is None or before != catalogues or made.missing_servers != missing:
            made = replace(self._make(servers, connections, clients), missing_servers=missing)
        self._last[key] = catalogues, made  # even if equal: comparing identical objects is faster
        return made

    def _make(
        self, servers: WorkspaceServers, connections: Sequence[ServerConnection], clients: Sequence[ServerConnection]
    ) -> ToolSet:
        tools: dict[str, Tool] = dict(self._own.tools)
        offered_tools = list(servers.tools(connections, self._reserved))
        tools.update((tool.name, tool) for tool in offered_tools)
        keys = [(found.config.name, offered.name) for found in clients for offered in found.catalogue.tools]
        names = assign_names(keys, {*tools, *self._reserved}, {})
        for found in clients:
            for offered in found.catalogue.tools:
                name = names[found.config.name, offered.name]
                tools[name] = own = McpTool(name, offered, found)
                offered_tools.append(own)
        tools.update((tool.name, tool) for tool in resource_tools([*connections, *clients]))
        trusted = frozenset(found.config.name for found in connections if found.config.trust)
        foreign = frozenset(found.config.name for found in clients)
        return ToolSet(tools, trusted, foreign, server_tools(offered_tools, [*connections, *clients]))
