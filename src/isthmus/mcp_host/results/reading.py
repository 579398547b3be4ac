"""Asks a connected server for a prompt or a resource, and makes what came into content for a model.

A server has `ANSWER_SECONDS`; what cannot be had is a ToolFailure that says which server, what and why. Deliberately
not here: which server is asked, and by whom.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.errors import NeedsLoginError, ServerLostError
from isthmus.mcp_host.results.result import McpResult, Rendered, ResultPart, TextPart, clean, marked, parts_of, render
from isthmus.tools.base import Content
from isthmus.tools.failure import ToolFailure

if TYPE_CHECKING:
    from mcp_types import GetPromptResult, ReadResourceResult

    from isthmus.mcp_host.connection.session import McpSession

T = TypeVar("T")

ANSWER_SECONDS = 60.0
"""Maximum time in seconds for a prompt or a resource, with reconnecting; a server's shorter `timeout` counts."""
EXAMPLE = (
    "(This prompt is a conversation. What stands under [assistant] was not said by you: it is the prompt's example.)"
)


async def prompt_from(connection: ServerConnection, name: str, arguments: Mapping[str, str], folder: Path) -> Content:
    """Return a prompt of a server with its arguments filled in; its media are kept in ``folder``.

    Raises:
        ToolFailure: the server does not offer it any more, cannot be reached, or refused.
    """
    known = {prompt.name for prompt in connection.catalogue.prompts}
    if known and name not in known:
        server = connection.config.name
        raise ToolFailure(f"the MCP server {server!r} does not offer the prompt {name!r} any more", "unknown_prompt")
    found = await _answer(connection, lambda session: session.get_prompt(name, arguments), f"the prompt {name!r}")
    if not found.messages:
        raise ToolFailure(f"the MCP server {connection.config.name!r} gave an empty prompt {name!r}", "mcp_error")
    rendered = await _rendered(_prompt_parts(found), folder)
    return Content(rendered.for_model, rendered.media)


async def resource_from(connection: ServerConnection, uri: str, folder: Path) -> Rendered:
    """Return the contents of a resource of a server, cut if too long, and marked as untrusted for the model.

    The media, and the whole of a cut text, are kept in ``folder``.

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
        raise error.failure(server, f"the MCP server {server!r} did not give {what}", connection.hidden) from error
    except ToolFailure:
        raise
    except Exception as error:
        told = clean(connection.hidden(_why(server, what, error)))
        raise ToolFailure(told, "mcp_error", for_model=marked(told)) from error


def _why(server: str, what: str, error: Exception) -> str:
    from mcp import MCPError
    from pydantic import ValidationError

    if isinstance(error, MCPError):
        # Some servers repeat the code in the message.
        code = "" if str(error.code) in error.message else f" (error {error.code})"
        return f"the MCP server {server!r} did not give {what}: {error.message}{code}"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"the MCP server {server!r} sent for {what} what does not fit MCP: {place}: {first['msg']}"
    return f"the MCP server {server!r} did not give {what}: {error or type(error).__name__}"


def _prompt_parts(found: "GetPromptResult") -> tuple[ResultPart, ...]:
    """Return the messages of a prompt; whose they are is said where they are not all the user's."""
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
