"""MCP servers of AgentSettings that are passed on to a hosted agent, which connects to them itself. Pure.

Only servers that a client brings are passed on. Which clients may bring some is decided elsewhere.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.acp.v1.connection import AgentCapabilities
from isthmus.acp.v1.sessions import CommandServer, HttpMcpServer, McpServer, NamedValue
from isthmus.development_tool import McpServerSettings

log = logging.getLogger(__name__)


def servers_for(settings: Sequence[McpServerSettings], capabilities: AgentCapabilities) -> tuple[McpServer, ...]:
    """Return the servers for an agent; those at a URL only if it can connect to them."""
    takes_urls = capabilities.mcp_capabilities is not None and capabilities.mcp_capabilities.http
    passed: list[McpServer] = []
    for server in settings:
        if server.command is not None:
            passed.append(CommandServer(server.name, server.command, server.args, _named(server.env)))
        elif server.url is not None and takes_urls:
            passed.append(HttpMcpServer(server.name, server.url, _named(server.headers)))
        elif server.url is not None:
            log.warning("the agent cannot connect to MCP servers at a URL: %s is not passed on", server.name[:100])
    return tuple(passed)


def _named(values: Mapping[str, Any] | None) -> tuple[NamedValue, ...]:
    return tuple(NamedValue(name, str(value)) for name, value in (values or {}).items())
