"""Requests to a connected server for a prompt or a resource, converted into content for a model.

A server has `ANSWER_SECONDS` to answer. A ToolFailure names the server, the prompt or resource, and the reason.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.errors import NeedsLoginError, ServerLostError
from isthmus.mcp_host.results.result import McpResult, Rendered, ResultPart, TextPart, clean, marked, parts_of, render
from isthmus.tools.port.base import Content
from isthmus.tools.port.failure import ToolFailure

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, ReadResourceResult

    from isthmus.mcp_host.connection.session import McpSession

T = TypeVar("T")

ANSWER_SECONDS = 60.0
"""Maximum time in seconds to get a prompt or a resource, including reconnecting; a shorter `timeout` wins."""
EXAMPLE = "(This prompt is a conversation. You did not write the text under [assistant]: it is the prompt's example.)"


async def prompt_from(connection: ServerConnection, name: str, arguments: Mapping[str, str], folder: Path) -> Content:
    """Return a server's prompt with its arguments filled in; its media are stored in ``folder``.

    Raises:
        ToolFailure: the server no longer offers the prompt, cannot be reached, or refused.
    """
    known = {prompt.name for prompt in connection.catalogue.prompts}
    if known and name not in known:
        server = connection.config.name
        raise ToolFailure(f"the MCP server {server!r} no longer offers the prompt {name!r}", "unknown_prompt")
    found = await _answer(connection, lambda session: session.get_prompt(name, arguments), f"the prompt {name!r}")
    if not found.messages:
        raise ToolFailure(f"the MCP server {connection.config.name!r} sent an empty prompt {name!r}", "mcp_error")
    rendered = await _rendered(_prompt_parts(found), folder)
    return Content(rendered.for_model, rendered.media)


async def resource_from(connection: ServerConnection, uri: str, folder: Path) -> Rendered:
    """Return the contents of a server's resource, cut if too long, and marked as untrusted for the model.

    The media, and the full text if it was cut, are stored in ``folder``.

    Raises:
        ToolFailure: the server cannot be reached, or refused.
    """
    found = await _answer(connection, lambda session: session.read_resource(uri), f"the resource {uri}")
    return await _rendered(_resource_parts(found), folder, is_marked=True)


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
        raise error.failure(server) from error
    except NeedsLoginError as error:
        raise error.failure(server, f"the MCP server {server!r} did not send {what}", connection.hidden) from error
    except ToolFailure:
        raise
    except Exception as error:
        message = clean(connection.hidden(_describe(server, what, error)))
        raise ToolFailure(message, "mcp_error", for_model=marked(message)) from error


def _describe(server: str, what: str, error: Exception) -> str:
    from mcp import MCPError
    from pydantic import ValidationError

    if isinstance(error, MCPError):
        # Some servers repeat the code in the message.
        code = "" if str(error.code) in error.message else f" (error {error.code})"
        return f"the MCP server {server!r} did not send {what}: {error.message}{code}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"the MCP server {server!r} sent an invalid answer for {what}: {place}: {first['msg']}"
    return f"the MCP server {server!r} did not send {what}: {error or type(error).__name__}"


def _prompt_parts(found: "GetPromptResult") -> tuple[ResultPart, ...]:
    """Return the messages of a prompt, with their roles if not all of them are from the user."""
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


async def _rendered(parts: tuple[ResultPart, ...], folder: Path, *, is_marked: bool = False) -> Rendered:
    name = f"mcp-{secrets.token_hex(6)}"
    return await asyncio.to_thread(render, McpResult(parts), folder, name, is_marked=is_marked)
