"""search_mcp_tools: finds tools of MCP servers whose schemas the model was not sent, and loads them.

Made anew for each segment, over the tools that there are then. Deliberately not here: when there is something to
search, and what loading means (:mod:`isthmus.agent.tool_loading`).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from isthmus.agent.tool_index import SearchedTool, ToolIndex
from isthmus.amounts import show_count
from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.tools.arguments import CheckedArguments, check_arguments
from isthmus.tools.base import SEARCH_TOOL, Approved, Arguments, ToolContext, ToolItem, ToolKind, ToolSucceeded

DEFAULT_LIMIT = 5
MAXIMUM_LIMIT = 20
"""Tools that one search loads at the most."""
SHOWN_DESCRIPTION = 300
"""Characters of a tool's description in what a search returns; the whole comes with its schema."""
SELECT = "select:"
"""Begins a query that names tools instead of describing them."""

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2_000,
            "description": f"Words such as 'github create issue', or {SELECT} and names with commas between.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": f"Tools to load at the most, up to {MAXIMUM_LIMIT}. Default: {DEFAULT_LIMIT}.",
        },
    },
    "required": ["query"],
}


class ToolSearch:
    """Searches tools by words, or takes them by their names."""

    name = SEARCH_TOOL
    description = (
        "Finds tools of MCP servers that are not loaded yet, by words in their names, descriptions and parameters, and "
        f"loads them: they can be called from then on. {SELECT}name1,name2 loads tools by their names. "
        "The system prompt says which servers there are."
    )
    parameters = _PARAMETERS
    kind = ToolKind.READ

    def __init__(self, tools: Sequence[SearchedTool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @cached_property
    def _index(self) -> ToolIndex:
        return ToolIndex(tuple(self._tools.values()))

    def describe(self, arguments: Arguments) -> str:
        """What is searched."""
        return f"Search the tools of MCP servers: {_checked(arguments).string('query')}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Nothing to confirm."""
        _checked(arguments)
        return None

    async def run(self, arguments: Arguments, context: ToolContext, approved: Approved) -> AsyncIterator[ToolItem]:
        """The tools that fit, loaded."""
        checked = _checked(arguments)
        query = checked.string("query").strip()
        missing: list[str] = []
        if query.casefold().startswith(SELECT):
            wanted = [name for part in query[len(SELECT) :].split(",") if (name := part.strip())]
            found = tuple(self._tools[name] for name in dict.fromkeys(wanted) if name in self._tools)[:MAXIMUM_LIMIT]
            missing = [name for name in wanted if name not in self._tools]
        else:
            limit = min(checked.integer("limit", DEFAULT_LIMIT), MAXIMUM_LIMIT)
            found = self._index.search(query, limit)
        names = tuple(tool.name for tool in found)
        output = ToolOutput(text="\n".join(names) or "No tool was found.")
        yield ToolSucceeded(output, self._told(found, missing), loads=names)

    def _told(self, found: Sequence[SearchedTool], missing: Sequence[str]) -> str:
        lines = ["Loaded; call them by these names:", *map(_line, found)] if found else ["No tool was found."]
        if missing:
            lines.append(f"No tool of an MCP server is named {', '.join(missing)[:500]}; search by words instead.")
        elif not found:
            lines.append(f"Try other words: {show_count(len(self._tools), 'tool')} can be searched.")
        return "\n".join(lines)


def _checked(arguments: Arguments) -> CheckedArguments:
    return check_arguments(SEARCH_TOOL, _PARAMETERS, arguments)


def _line(tool: SearchedTool) -> str:
    text = " ".join(tool.description.split())
    if len(text) > SHOWN_DESCRIPTION:
        text = text[:SHOWN_DESCRIPTION] + "…"
    return f"- {tool.name} ({tool.server}): {text}"
