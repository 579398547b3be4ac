"""The list of MCP servers that ``/mcp`` shows, as in Gemini CLI's MCP documentation. Pure.

Commands and URLs arrive without secrets (:attr:`~isthmus.tools.port.servers.ServerStatus.summary`).
"""

import json
from collections.abc import Sequence
from enum import Enum

from isthmus.agent.session.size import tool_tokens
from isthmus.tools.port.servers import DiscoveryState, ServerState, ServerStatus, ServerTool
from isthmus.tools.port.tool_set import SEARCH_TOOL

NONE_CONFIGURED = (
    "No MCP servers are configured. Add them under mcpServers in ~/.gemini/settings.json or the project's"
    " .gemini/settings.json, or with `isthmus mcp add`."
)

MAXIMUM_NAMES = 200
"""Maximum number of prompts or resources of a server that are listed."""
LONGEST_NAME = 200
"""Maximum length in characters of a listed name."""

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
    """Return all servers with their states, addresses and features, and the state of discovery.

    ``loaded`` is the number of tools that the model has loaded on demand; None if it receives all of them.
    """
    problems = [line for status in servers if status.is_file for line in _label_lines("Problem", status.problem or "")]
    notes = ["\n".join(problems)] if problems else []
    shown = [_server(status, detail) for status in servers if not status.is_file]
    if not shown:
        return "\n\n".join([NONE_CONFIGURED, *notes])
    parts = ["MCP Servers Status:", *shown, *notes]
    if loaded is not None:
        parts.append(f"Tools on demand: the model finds them with {SEARCH_TOOL}; {loaded} are loaded now")
    return "\n\n".join([*parts, f"Discovery State: {discovery}"])


def _server(status: ServerStatus, detail: Detail) -> str:
    is_connected = status.state is ServerState.CONNECTED
    icon = _CONTAINER if is_connected and status.is_container else _ICONS[status.state]
    lines = [f"{icon} {' '.join(status.name.split())} ({status.state.upper()})", *status.summary, *status.notes]
    if status.problem:
        lines += _label_lines(_PROBLEMS.get(status.state, "Note"), status.problem)
    if detail is not Detail.NAMES and status.description:
        lines += _label_lines("Description", status.description)
    lines += _tools(status.tools, detail, is_connected=is_connected)
    if status.prompts:
        lines.append(f"Prompts: {_join_names(status.prompts)}")
    if status.resources:
        lines.append(f"Resources: {_join_names(status.resources)}")
    if status.tools:
        tokens = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in status.tools)
        lines.append(f"Tokens: ~{tokens:,}")
    return "\n  ".join(lines)


def _tools(tools: Sequence[ServerTool], detail: Detail, *, is_connected: bool) -> list[str]:
    if not tools:
        # A server may offer only prompts or resources.
        return ["Tools: none"] if is_connected else []
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


def _join_names(names: Sequence[str]) -> str:
    """Return names, which a server chose, in one line."""
    shown = [" ".join(name.split())[:LONGEST_NAME] for name in names[:MAXIMUM_NAMES]]
    more = [f"and {len(names) - MAXIMUM_NAMES:,} more"] * (len(names) > MAXIMUM_NAMES)
    return ", ".join([*shown, *more])


def _label_lines(label: str, text: str) -> list[str]:
    """Return ``Label: text``, with further lines of the text indented below."""
    first, *rest = text.strip().splitlines() or [""]
    return [f"{label}: {first}", *(f"  {line.strip()}" for line in rest)]
