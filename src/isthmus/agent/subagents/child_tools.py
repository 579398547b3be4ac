"""The tools of a subagent: those of the session that its definition names, but not all that the agent has. Pure."""

import fnmatch
from collections.abc import Sequence
from dataclasses import replace

from isthmus.agent.approval.policy_rules import rules_for
from isthmus.agent.approval.restricted_tools import OfServer
from isthmus.agent.subagents.invoke_agent import INVOKE_AGENT
from isthmus.internal_events import SubagentBegun
from isthmus.settings.rules.claude_names import CLAUDE_NAMES
from isthmus.tools.port.base import Tool
from isthmus.tools.port.tool_set import SEARCH_TOOL, ToolSet

ONLY_OF_THE_AGENT = frozenset((INVOKE_AGENT, "ask_user", "save_memory"))
"""Tools that no subagent has: it begins no others, asks the user nothing but permission, and remembers nothing."""


def child_tools(tools: ToolSet, subagent: SubagentBegun) -> ToolSet:
    """Return the tools of a subagent."""
    servers = {name: server.name for server in tools.servers for name in server.tools}
    kept = {
        name: tool
        for name, tool in tools.tools.items()
        if name not in ONLY_OF_THE_AGENT
        and (subagent.tools is None or name == SEARCH_TOOL or _is_named(subagent.tools, tool, servers.get(name)))
        and not _is_named(subagent.refused_tools, tool, servers.get(name))
    }
    left = tuple(replace(one, tools=tuple(name for name in one.tools if name in kept)) for one in tools.servers)
    return replace(tools, tools=kept, servers=left, policies=rules_for(tools.policies, subagent.name))


def _is_named(patterns: Sequence[str], tool: Tool, server: str | None) -> bool:
    own = tool.server_tool_name if isinstance(tool, OfServer) else tool.name
    return is_named(patterns, tool.name, server, own)


def is_named(patterns: Sequence[str], tool: str, server: str | None = None, own: str = "") -> bool:
    """Return whether patterns of a definition name a tool: by our name, Claude Code's, or as one of an MCP server.

    ``own`` is the name that the ``server`` gives its tool.
    """
    names = [tool, *CLAUDE_NAMES.get(tool, ())]
    if server is not None:
        names = [tool, f"mcp__{server}", f"mcp__{server}__{own}", f"mcp_{server}_{own}"]
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)
