"""The list of MCP servers that ``/mcp`` shows, as in Gemini CLI's MCP documentation. Pure.

A command or a URL comes without secrets already (:attr:`~isthmus.tools.servers.ServerStatus.summary`).
"""

import json
from collections.abc import Sequence
from enum import Enum

from isthmus.agent.context.size import tool_tokens
from isthmus.tools.base import SEARCH_TOOL
from isthmus.tools.servers import DiscoveryState, ServerState, ServerStatus, ServerTool

NONE_CONFIGURED = (
    "No MCP servers are configured. They stand under mcpServers in ~/.gemini/settings.json or the project's"
    " .gemini/settings.json; `isthmus mcp add` writes one there."
)

MAXIMUM_NAMES = 200
"""Prompts or resources of a server that are named."""
LONGEST_NAME = 200

_ICONS = {
    ServerState.CONNECTED: "📡",
    ServerState.CONNECTING: "⏳",
    ServerState.DISCONNECTED: "🔌",
    ServerState.NEEDS_LOGIN: "🔑",
    ServerState.DISABLED: "⏸",
}
_CONTAINER = "🐳"
_PROBLEMS = {ServerState.DISCONNECTED: "Error", ServerState.NEEDS_LOGIN: "Login", ServerState.DISABLED: "Disabled"}


class Detail(Enum):
    """Amount of detail about each tool."""

    NAMES = "names"
    DESCRIPTIONS = "descriptions"
    SCHEMAS = "schemas"


def listing(
    servers: Sequence[ServerStatus], detail: Detail, discovery: DiscoveryState, loaded: int | None = None
) -> str:
    """All servers, each with its state, how it is reached and what it offers, and how far discovery is.

    ``loaded``: how many tools the model has found, where it is shown them on demand; None: it is shown all.
    """
    problems = [line for status in servers if status.is_file for line in _labelled("Problem", status.problem or "")]
    notes = ["\n".join(problems)] if problems else []
    shown = [_server(status, detail) for status in servers if not status.is_file]
    if not shown:
        return "\n\n".join([NONE_CONFIGURED, *notes])
    parts = ["MCP Servers Status:", *shown, *notes]
    if loaded is not None:
        parts.append(f"Tools on demand: the model finds them with {SEARCH_TOOL}; it has {loaded} of them now")
    return "\n\n".join([*parts, f"Discovery State: {discovery}"])


def _server(status: ServerStatus, detail: Detail) -> str:
    is_there = status.state is ServerState.CONNECTED
    icon = _CONTAINER if is_there and status.is_container else _ICONS[status.state]
    lines = [f"{icon} {' '.join(status.name.split())} ({status.state.upper()})", *status.summary, *status.notes]
    if status.problem:
        lines += _labelled(_PROBLEMS.get(status.state, "Note"), status.problem)
    if detail is not Detail.NAMES and status.description:
        lines += _labelled("Description", status.description)
    lines += _tools(status.tools, detail, is_there=is_there)
    if status.prompts:
        lines.append(f"Prompts: {_named(status.prompts)}")
    if status.resources:
        lines.append(f"Resources: {_named(status.resources)}")
    if status.tools:
        tokens = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in status.tools)
        lines.append(f"Tokens: ~{tokens:,}")
    return "\n  ".join(lines)


def _tools(tools: Sequence[ServerTool], detail: Detail, *, is_there: bool) -> list[str]:
    if not tools:
        # A server may be there for its prompts or resources alone.
        return ["Tools: none"] if is_there else []
    if detail is Detail.NAMES:
        return [f"Tools: {', '.join(tool.name for tool in tools)}"]
    lines = ["Tools:"]
    for tool in tools:
        described = tool.description.strip().splitlines()
        lines.append(f"  - {tool.name}{f': {described[0]}' if described else ''}")
        lines += [f"    {line.strip()}" for line in described[1:] if line.strip()]
        if detail is Detail.SCHEMAS:
            schema = json.dumps(dict(tool.parameters), indent=2, ensure_ascii=False)
            lines += [f"      {line}" for line in schema.splitlines()]
    return lines


def _named(names: Sequence[str]) -> str:
    """Names that a server chose, in one line."""
    shown = [" ".join(name.split())[:LONGEST_NAME] for name in names[:MAXIMUM_NAMES]]
    more = [f"and {len(names) - MAXIMUM_NAMES:,} more"] * (len(names) > MAXIMUM_NAMES)
    return ", ".join([*shown, *more])


def _labelled(label: str, text: str) -> list[str]:
    """``Label: text``, further lines of the text below it."""
    first, *rest = text.strip().splitlines() or [""]
    return [f"{label}: {first}", *(f"  {line.strip()}" for line in rest)]
