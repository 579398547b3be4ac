"""search_mcp_tools: finds tools of MCP servers whose schemas the model has not received, and shows them.

Each segment has its own search over its tools. Not here: when tools are searched, and the meaning of loading, see
:mod:`isthmus.agent.tool_search.loading`.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from isthmus.agent.tool_search.call_tool import specification
from isthmus.agent.tool_search.index import SearchedTool, ToolIndex
from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.text.units import show_count
from isthmus.text.visible import with_ellipsis
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import CALL_TOOL, SEARCH_TOOL

DEFAULT_LIMIT = 5
MAXIMUM_LIMIT = 20
"""Maximum number of tools that one search loads."""
MAXIMUM_SHOWN = 4_000
"""Maximum length in characters of a tool with its schema in the result of a search."""
SHOWN_DESCRIPTION = 300
"""Maximum length in characters of the description of a longer one."""
MAXIMUM_QUERY = 2_000
"""Maximum length of a query in characters."""
SELECT = "select:"
"""Prefix of a query that names tools instead of describing them."""

_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": f"Words such as 'github create issue', or {SELECT} and names with commas between.",
        },
        "limit": {
            "type": "integer",
            "description": f"Tools to load at the most, up to {MAXIMUM_LIMIT}. Default: {DEFAULT_LIMIT}.",
        },
    },
    "required": ["query"],
}


class ToolSearch:
    """Tool that finds tools by words, or selects them by name."""

    name = SEARCH_TOOL
    description = (
        "Finds tools of MCP servers that are not in your list, by words in their names, descriptions and parameters, "
        f"and describes them: call what it finds with `{CALL_TOOL}`. {SELECT}name1,name2 finds tools by their names. "
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
        """Return the query."""
        return f"Search the tools of MCP servers: {_read(arguments)[0]}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return None: there is nothing to confirm."""
        _read(arguments)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Load and return the matching tools."""
        query, limit = _read(arguments)
        missing: list[str] = []
        if query.casefold().startswith(SELECT):
            wanted = [name for part in query[len(SELECT) :].split(",") if (name := part.strip())]
            found = tuple(self._tools[name] for name in dict.fromkeys(wanted) if name in self._tools)[:MAXIMUM_LIMIT]
            missing = [name for name in wanted if name not in self._tools]
        else:
            found = self._index.search(query, limit)
        names = tuple(tool.name for tool in found)
        output = ToolOutput(text="\n".join(names) or "No tool was found.")
        return ToolSucceeded(output, self._result_for_model(found, missing), loads=names)

    def _result_for_model(self, found: Sequence[SearchedTool], missing: Sequence[str]) -> str:
        heading = f"Found; call them with `{CALL_TOOL}`, by these names:"
        lines = [heading, *map(_line, found)] if found else ["No tool was found."]
        if missing:
            lines.append(f"No tool of an MCP server is named {', '.join(missing)[:500]}; search by words instead.")
        elif not found:
            lines.append(f"Try other words: {show_count(len(self._tools), 'tool')} can be searched.")
        return "\n".join(lines)


def _read(arguments: Arguments) -> tuple[str, int]:
    """Return the query and the maximum number of tools; raises ToolFailure."""
    query: object = arguments.get("query")
    if not isinstance(query, str) or not query.strip() or len(query) > MAXIMUM_QUERY:
        expected = f"a non-empty string of at most {MAXIMUM_QUERY} characters"
        raise ToolFailure(f"{SEARCH_TOOL}: query: expected {expected}, received {query!r:.80}", "invalid_arguments")
    limit: object = arguments.get("limit")
    if limit is None:
        return query.strip(), DEFAULT_LIMIT
    # Some providers send every number as a floating-point one.
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1 or limit % 1:
        expected = "a whole number of 1 or more"
        raise ToolFailure(f"{SEARCH_TOOL}: limit: expected {expected}, received {limit!r:.80}", "invalid_arguments")
    return query.strip(), int(min(limit, MAXIMUM_LIMIT))


def _line(tool: SearchedTool) -> str:
    line = f"- {tool.server}: {specification(tool.name, tool.description, tool.parameters)}"
    if len(line) <= MAXIMUM_SHOWN:
        return line
    text = with_ellipsis(" ".join(tool.description.split()), SHOWN_DESCRIPTION)
    return f"- {tool.server}: {tool.name}: {text} (`{CALL_TOOL}` without arguments says its parameters)"
