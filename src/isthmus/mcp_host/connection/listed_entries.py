"""Entries of a server's listings, of the SDK's types."""

import mcp_types as types

from isthmus.mcp_host.catalogue.listing import ListedTool
from isthmus.mcp_host.results.repair import OUTPUT_SCHEMA
from isthmus.mcp_host.results.result import said_maximum
from isthmus.tools.port.server_contents import PromptArgument, ServerPrompt, ServerResource


def listed_tool(tool: types.Tool) -> ListedTool:
    """Return a tool with its hints; one without a description has its title."""
    hints = tool.annotations
    return ListedTool(
        tool.name,
        tool.description or tool.title or "",
        tool.input_schema,
        is_read_only=hints is not None and hints.read_only_hint is True,
        is_idempotent=hints is not None and hints.idempotent_hint is True,
        is_destructive=hints is not None and hints.destructive_hint is True,
        result_characters=said_maximum(tool.meta),
        output_schema=(tool.meta or {}).get(OUTPUT_SCHEMA),
    )


def listed_prompt(server: str, prompt: types.Prompt) -> ServerPrompt:
    """Return a prompt of a server; one without a description has its title."""
    arguments = tuple(
        PromptArgument(item.name, item.description or "", bool(item.required)) for item in prompt.arguments or ()
    )
    return ServerPrompt(server, prompt.name, prompt.description or prompt.title or "", arguments)


def listed_resource(server: str, uri: str, found: "types.Resource | types.ResourceTemplate") -> ServerResource:
    """Return a resource, or a template, of a server."""
    return ServerResource(
        server,
        uri,
        found.title or found.name,
        found.description or "",
        found.mime_type,
        is_template=isinstance(found, types.ResourceTemplate),
    )
