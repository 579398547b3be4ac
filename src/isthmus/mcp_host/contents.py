"""Implementation of the ServerContents port by the MCP host: prompts, resources and instructions of servers.

Listings are the stored ones of the connections; only a prompt or resource requested by name is fetched from a server
(:mod:`isthmus.mcp_host.results.reading`).
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.errors import ServerLostError
from isthmus.mcp_host.host import McpHost
from isthmus.mcp_host.results.reading import prompt_from, resource_from
from isthmus.tools.port.base import Content
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.server_contents import ServerContents, ServerInstructions, ServerPrompt, ServerResource
from isthmus.tools.port.tool_set import ToolScope

COMPLETION_SECONDS = 1.0
"""Maximum wait in seconds for suggestions: the user is typing."""
MAXIMUM_SUGGESTIONS = 100
_LOG = logging.getLogger("isthmus.mcp")


class HostContents(ServerContents):
    """Prompts and resources of the servers of a host."""

    def __init__(self, host: McpHost) -> None:
        self._host = host

    @override
    async def server_names(self, scope: ToolScope) -> Sequence[str]:
        # The statuses also contain unreadable settings files.
        return [
            status.name
            for status in await self._host.servers(scope)
            if (status.name, status.transport) != ("settings", "")
        ]

    @override
    async def instructions(self, scope: ToolScope) -> Sequence[ServerInstructions]:
        return [
            ServerInstructions(found.config.name, found.hidden(found.catalogue.instructions))
            for found in await self._host.in_scope(scope)
            if found.catalogue.instructions.strip() and not found.catalogue.is_empty
        ]

    @override
    async def prompts(self, scope: ToolScope) -> Sequence[ServerPrompt]:
        connections = await self._host.in_scope(scope, is_patient=True)
        return [prompt for found in connections for prompt in found.catalogue.prompts]

    @override
    async def resources(self, scope: ToolScope) -> Sequence[ServerResource]:
        return [resource for found in await self._host.in_scope(scope) for resource in found.catalogue.resources]

    @override
    async def get_prompt(
        self, scope: ToolScope, server: str, name: str, arguments: Mapping[str, str], folder: Path
    ) -> Content:
        return await prompt_from(await self._connection(scope, server), name, arguments, folder)

    @override
    async def read_resource(self, scope: ToolScope, server: str, uri: str, folder: Path) -> Content:
        rendered = await resource_from(await self._connection(scope, server), uri, folder)
        return Content(rendered.for_model, rendered.media)

    @override
    async def complete(
        self, scope: ToolScope, prompt: ServerPrompt, argument: str, typed: str, given: Mapping[str, str]
    ) -> Sequence[str]:
        connections = await self._host.in_scope(scope)
        found = next((item for item in connections if item.config.name == prompt.server), None)
        if found is None or not found.is_settled:
            return ()
        from mcp import MCPError
        from pydantic import ValidationError

        try:
            async with asyncio.timeout(COMPLETION_SECONDS):
                values = await found.request(lambda session: session.complete(prompt.name, argument, typed, given))
        except (TimeoutError, ServerLostError, MCPError, ValidationError) as error:
            # The user is typing, so missing suggestions are not an error.
            reason = found.hidden(str(error)).partition("\n")[0] or f"no answer within {COMPLETION_SECONDS:g} s"
            _LOG.info("MCP server %s: no suggestions for %s: %s", prompt.server, prompt.name, reason)
            return ()
        except Exception:
            _LOG.exception("MCP server %s: a bug in isthmus; no suggestions for %s", prompt.server, prompt.name)
            return ()
        return [value for value in values[:MAXIMUM_SUGGESTIONS] if value.isprintable()]

    async def _connection(self, scope: ToolScope, server: str) -> ServerConnection:
        connections = await self._host.in_scope(scope)
        found = next((item for item in connections if item.config.name == server), None)
        if found is not None:
            return found
        status = next((item for item in await self._host.servers(scope) if item.name == server), None)
        if status is None:
            used = ", ".join(item.config.name for item in connections) or "none"
            raise ToolFailure(f"this session uses no MCP server {server!r}; it uses: {used}", "unknown_mcp_server")
        reason = f": {status.problem}" if status.problem else ""
        message = f"the MCP server {server!r} is {status.state}"
        raise ToolFailure(f"{message}{reason}", "mcp_not_in_use", message)
