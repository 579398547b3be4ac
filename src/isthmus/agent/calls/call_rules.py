"""Decision of policy files and permission rules on a call of a session's tools; the rules are in its ToolSet."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.agent.approval.call_effect import effect_of
from isthmus.agent.approval.permission_rules import PermittedCall, permission_on
from isthmus.agent.approval.policy import Policy
from isthmus.agent.approval.policy_rules import RuledCall, Ruling, rule_on
from isthmus.agent.approval.restricted_tools import named_tool
from isthmus.development_tool import ConfirmationDetails
from isthmus.files.path_rules import expand_home, followed
from isthmus.tools.port.base import MovingTool, Tool
from isthmus.tools.port.tool_set import ServerTools, ToolSet


def server_of(tools: ToolSet, name: str) -> str | None:
    """Return the MCP server of a tool; None for a built-in tool."""
    server = server_tools_of(tools, name)
    return None if server is None else server.name


def server_tools_of(tools: ToolSet, name: str) -> ServerTools | None:
    """Return the MCP server of a tool with all its tools; None for a built-in tool."""
    return next((server for server in tools.servers if name in server.tools), None)


def moved_files(tool: Tool, arguments: Mapping[str, Any], workspace: Path) -> tuple[str, ...]:
    """Return the absolute path of the file that a call moves, and whose text it so reads, and where its links lead.

    Empty if the call moves none. Symbolic links are followed, which blocks for a moment.
    """
    source = tool.moved_from(arguments) if isinstance(tool, MovingTool) else None
    return () if source is None else followed(workspace / expand_home(source))


def ruling_of(
    tools: ToolSet,
    tool: Tool,
    arguments: Mapping[str, Any],
    proposal: ConfirmationDetails | None,
    policy: Policy,
    workspace: Path,
) -> Ruling | None:
    """Return the stricter decision of policy files and permission rules on a call; None if no rule applies."""
    if not tools.policies and not tools.permissions:
        return None
    effect = effect_of(tool.name, arguments, proposal, workspace)
    if source := moved_files(tool, arguments, workspace):
        effect = {**effect, "paths": list(source)}
    named = named_tool(tool, server_of(tools, tool.name))
    found = (
        rule_on(tools.policies, RuledCall(named, arguments, policy.mode, policy.may_ask, effect)),
        permission_on(tools.permissions, PermittedCall(named, effect, workspace)) if tools.permissions else None,
    )
    return min(filter(None, found), key=lambda ruling: ruling.decision.leniency, default=None)
