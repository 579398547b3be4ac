"""The ServerContents port over the connections of the MCP host: prompts, resources and instructions of servers.

Listings are those that the connections keep; only what is asked for by name goes to a server, and no longer than
`ANSWER_SECONDS`. What cannot be had is a ToolFailure that says which server, what and why. Deliberately not here:
names of commands, references in a prompt, and who may ask.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isthmus.mcp_host.connection import ServerConnection
from isthmus.mcp_host.errors import ServerLostError
from isthmus.mcp_host.host import McpHost
from isthmus.mcp_host.result import McpResult, ResultPart, TextPart, parts_of, render
from isthmus.tools.base import Content, ToolScope
from isthmus.tools.failure import ToolFailure
from isthmus.tools.server_contents import ServerInstructions, ServerPrompt, ServerResource

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, ReadResourceResult

    from isthmus.mcp_host.session import McpSession

T = TypeVar("T")

ANSWER_SECONDS = 60.0
"""How long a server may take for a prompt or a resource, connecting anew included; its own shorter `timeout` counts."""
COMPLETION_SECONDS = 1.0
"""How long a server may take for suggestions: somebody is typing."""
MAXIMUM_SUGGESTIONS = 100
EXAMPLE = (
    "(This prompt is a conversation. What stands under [assistant] was not said by you: it is the prompt's example.)"
)


class HostContents:
    """See :class:`isthmus.tools.server_contents.ServerContents`."""

    def __init__(self, host: McpHost) -> None:
        self._host = host

    async def server_names(self, scope: ToolScope) -> Sequence[str]:
        """See :meth:`isthmus.tools.server_contents.ServerContents.server_names`."""
        return [found.config.name for found in await self._host.in_scope(scope)]

    async def instructions(self, scope: ToolScope) -> Sequence[ServerInstructions]:
        """See :meth:`isthmus.tools.server_contents.ServerContents.instructions`."""
        return [
            ServerInstructions(found.config.name, found.hidden(found.offer.instructions))
            for found in await self._host.in_scope(scope)
            if found.offer.instructions.strip() and not found.offer.is_empty
        ]

    async def prompts(self, scope: ToolScope) -> Sequence[ServerPrompt]:
        """See :meth:`isthmus.tools.server_contents.ServerContents.prompts`."""
        connections = await self._host.in_scope(scope, is_patient=True)
        return [prompt for found in connections for prompt in found.offer.prompts]

    async def resources(self, scope: ToolScope) -> Sequence[ServerResource]:
        """See :meth:`isthmus.tools.server_contents.ServerContents.resources`."""
        return [resource for found in await self._host.in_scope(scope) for resource in found.offer.resources]

    async def get_prompt(
        self, scope: ToolScope, server: str, name: str, arguments: Mapping[str, str], folder: Path
    ) -> Content:
        """See :meth:`isthmus.tools.server_contents.ServerContents.get_prompt`."""
        connection = await self._connection(scope, server)
        known = {prompt.name for prompt in connection.offer.prompts}
        if known and name not in known:
            raise ToolFailure(
                f"the MCP server {server!r} does not offer the prompt {name!r} any more", "unknown_prompt"
            )
        found = await _answer(connection, lambda session: session.get_prompt(name, arguments), f"the prompt {name!r}")
        return _content(_prompt_parts(found), folder)

    async def read_resource(self, scope: ToolScope, server: str, uri: str, folder: Path) -> Content:
        """See :meth:`isthmus.tools.server_contents.ServerContents.read_resource`."""
        return await read_from(await self._connection(scope, server), uri, folder)

    async def complete(
        self, scope: ToolScope, prompt: ServerPrompt, argument: str, typed: str, given: Mapping[str, str]
    ) -> Sequence[str]:
        """See :meth:`isthmus.tools.server_contents.ServerContents.complete`."""
        connections = await self._host.in_scope(scope)
        found = next((item for item in connections if item.config.name == prompt.server), None)
        if found is None or not found.is_settled:
            return ()
        try:
            async with asyncio.timeout(COMPLETION_SECONDS):
                values = await found.request(lambda session: session.complete(prompt.name, argument, typed, given))
        except Exception:
            return ()  # Suggestions that do not come are none.
        return values[:MAXIMUM_SUGGESTIONS]

    async def _connection(self, scope: ToolScope, server: str) -> ServerConnection:
        connections = await self._host.in_scope(scope)
        found = next((item for item in connections if item.config.name == server), None)
        if found is not None:
            return found
        status = next((item for item in await self._host.servers(scope) if item.name == server), None)
        if status is None:
            used = ", ".join(item.config.name for item in connections) or "none"
            raise ToolFailure(f"this session uses no MCP server {server!r}; it uses: {used}", "unknown_mcp_server")
        why = f": {status.problem}" if status.problem else ""
        raise ToolFailure(f"the MCP server {server!r} is {status.state}{why}", "mcp_not_in_use")


async def read_from(connection: ServerConnection, uri: str, folder: Path) -> Content:
    """The contents of a resource of a server, as :meth:`HostContents.read_resource` gives them.

    Raises:
        ToolFailure: the server cannot be reached or refused.
    """
    found = await _answer(connection, lambda session: session.read_resource(uri), f"the resource {uri}")
    return _content(_resource_parts(found), folder)


async def _answer(connection: ServerConnection, perform: "Callable[[McpSession], Awaitable[T]]", what: str) -> T:
    server = connection.config.name
    seconds = min(connection.config.connect_seconds, ANSWER_SECONDS)
    try:
        async with asyncio.timeout(seconds):
            return await connection.request(perform)
    except TimeoutError as error:
        message = f"the MCP server {server!r} did not send {what} within {seconds:g} s"
        raise ToolFailure(message, "mcp_timeout") from error
    except ServerLostError as error:
        raise ToolFailure(str(error), "mcp_server_lost") from error
    except ToolFailure:
        raise
    except Exception as error:
        raise ToolFailure(connection.hidden(_why(server, what, error)), "mcp_error") from error


def _why(server: str, what: str, error: Exception) -> str:
    from mcp import MCPError
    from pydantic import ValidationError

    if isinstance(error, MCPError):
        return f"the MCP server {server!r} did not give {what}: {error.message} (error {error.code})"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"the MCP server {server!r} sent for {what} what does not fit MCP: {place}: {first['msg']}"
    return f"the MCP server {server!r} did not give {what}: {error or type(error).__name__}"


def _prompt_parts(found: "GetPromptResult") -> tuple[ResultPart, ...]:
    """The messages of a prompt; whose they are is said where they are not all the person's."""
    dumped = [message.model_dump(mode="json", by_alias=True, exclude_none=True) for message in found.messages]
    has_example = any(message["role"] != "user" for message in dumped)
    parts: list[ResultPart] = [TextPart(EXAMPLE)] * has_example
    for message in dumped:
        if has_example:
            parts.append(TextPart(f"[{message['role']}]"))
        parts += parts_of([cast("Mapping[str, Any]", message["content"])])
    return tuple(parts)


def _resource_parts(found: "ReadResourceResult") -> tuple[ResultPart, ...]:
    dumped = [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in found.contents]
    return parts_of([{"type": "resource", "resource": item} for item in dumped])


def _content(parts: tuple[ResultPart, ...], folder: Path) -> Content:
    rendered = render(McpResult(parts), folder, f"mcp-{secrets.token_hex(6)}")
    return Content(rendered.for_model, rendered.media)
