"""The tools that sessions have: our own and what servers offer now, made anew only when it changed.

Deliberately not here: which servers a session uses, and waiting for them (:mod:`isthmus.mcp_host.host`).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from isthmus.mcp_host.catalogue.catalogue import Catalogue
from isthmus.mcp_host.catalogue.tool_names import assign_names
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.resource_tools import resource_tools
from isthmus.mcp_host.tool import McpTool
from isthmus.mcp_host.workspace_servers import WorkspaceServers, server_tools
from isthmus.tools.base import Tool, ToolSet

Key: TypeAlias = tuple[str, str]
"""A session and its task."""
_Offers: TypeAlias = tuple[tuple[ServerConnection, Catalogue], ...]


class ToolSets:
    """The tool sets of the sessions that work now. ``reserved`` are names that no server's tool gets."""

    def __init__(self, own: ToolSet, reserved: Collection[str]) -> None:
        self._own = own
        self._reserved = reserved
        self._last: dict[Key, tuple[_Offers, ToolSet]] = {}

    def forget(self, key: Key) -> None:
        """Forget a session that does not work any more."""
        self._last.pop(key, None)

    def of(
        self,
        key: Key,
        servers: WorkspaceServers,
        connections: Sequence[ServerConnection],
        clients: Sequence[ServerConnection],
        names: Collection[str] | None = None,
    ) -> ToolSet:
        """Return the tools of these connections; the same object as before while they offer the same.

        `clients` are those of the session alone. `names` are the configured servers that the session uses; None: all.
        """
        offers: _Offers = tuple((found, found.offer) for found in (*connections, *clients))
        before, made = self._last.get(key, ((), None))
        missing = tuple(found.name for found in servers.missing(names))
        if made is None or before != offers or made.missing_servers != missing:
            made = replace(self._make(servers, connections, clients), missing_servers=missing)
        self._last[key] = offers, made  # also when they are equal: the same objects are compared sooner
        return made

    def _make(
        self, servers: WorkspaceServers, connections: Sequence[ServerConnection], clients: Sequence[ServerConnection]
    ) -> ToolSet:
        tools: dict[str, Tool] = dict(self._own.tools)
        offered_tools = list(servers.tools(connections, self._reserved))
        tools.update((tool.name, tool) for tool in offered_tools)
        keys = [(found.config.name, offered.name) for found in clients for offered in found.offer.tools]
        names = assign_names(keys, {*tools, *self._reserved}, {})
        for found in clients:
            for offered in found.offer.tools:
                name = names[found.config.name, offered.name]
                tools[name] = own = McpTool(name, offered, found)
                offered_tools.append(own)
        tools.update((tool.name, tool) for tool in resource_tools([*connections, *clients]))
        trusted = frozenset(found.config.name for found in connections if found.config.trust)
        foreign = frozenset(found.config.name for found in clients)
        return ToolSet(tools, trusted, foreign, server_tools(offered_tools, [*connections, *clients]))
