"""The tools of a session: which there are, what the settings say about them, and where they come from.

Not here: one tool, see :mod:`isthmus.tools.port.base`.
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from isthmus.development_tool import McpServerSettings
from isthmus.record import record
from isthmus.settings.rules.hooks import Hook
from isthmus.settings.rules.permissions import PermissionRule
from isthmus.settings.rules.rules import PolicyRule
from isthmus.tools.port.base import Tool


@record
class ToolScope:
    """Scope of a set of tools: the workspace, the session, its task, and the MCP servers of its AgentSettings.

    Without ``mcp_servers`` the session has all servers that are configured for the workspace, otherwise only these.
    ``user`` is the session's; the local user's name is empty. ``goes_on``: calls that were made before are settled
    first, so that the last good rules of the folder count if its settings are broken now.
    """

    workspace: Path
    context_id: str = ""
    task_id: str = ""
    mcp_servers: tuple[McpServerSettings, ...] = ()
    user: str = ""
    goes_on: bool = False


SEARCH_TOOL = "search_mcp_tools"
"""Name of the tool that finds others; no server's tool gets this name."""
CALL_TOOL = "call_tool"
"""Name of the tool that calls others, which are not in the list of a session; no server's tool gets this name."""


@record
class ServerTools:
    """The tools of an MCP server, by the names that the model uses.

    ``origin`` identifies the configuration that names the server: servers with the same name and origin are the same.
    ``is_always_loaded``: their schemas are sent to the model, however many tools there are. ``is_remote``: the server
    is at a URL of another machine.
    """

    name: str
    tools: tuple[str, ...]
    origin: str = ""
    is_always_loaded: bool = False
    is_remote: bool = False


@record
class ToolSet:
    """Tools by name, in the order in which they are offered to the model.

    ``trusted_servers`` are MCP servers whose tools run without asking by the user's own settings. ``foreign_servers``
    were named by a client: approvals by name in the settings do not apply to them. ``servers`` lists the tools of MCP
    servers. ``missing_servers`` names configured servers without tools at present. ``refusals`` maps tools that the
    settings forbid to the reason; ``always_asked`` maps those that the settings require a question for each time.
    ``yolo_refusal`` is the reason why the folder's settings refuse the approval mode ``yolo``, or None.
    ``keeps_answers``: questions offer answers that apply to more than the one call. ``policies`` are the rules of
    policy files, which decide each call, ``permissions`` the rules of Claude Code; ``hooks`` run around prompts, calls
    and model requests. ``readable_folders`` are folders outside the workspace that the model may read.
    """

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    trusted_servers: frozenset[str] = frozenset()
    foreign_servers: frozenset[str] = frozenset()
    servers: tuple[ServerTools, ...] = ()
    missing_servers: tuple[str, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])
    always_asked: Mapping[str, str] = field(default_factory=dict[str, str])
    yolo_refusal: str | None = None
    keeps_answers: bool = True
    policies: tuple[PolicyRule, ...] = ()
    hooks: tuple[Hook, ...] = ()
    readable_folders: tuple[Path, ...] = ()
    permissions: tuple[PermissionRule, ...] = ()

    @classmethod
    def of(cls, *tools: Tool) -> "ToolSet":
        """Return a set of these tools.

        Raises:
            ValueError: two tools have the same name.
        """
        named: dict[str, Tool] = {}
        for tool in tools:
            if named.setdefault(tool.name, tool) is not tool:
                raise ValueError(f"two tools are named {tool.name!r}; rename one")
        return cls(named)


class ToolSource(Protocol):
    """Source of a session's tools, which may change from turn to turn: MCP servers connect and disconnect."""

    async def tools(self, scope: ToolScope) -> ToolSet:
        """Return the current tools of a session. Does not wait long for slow servers, and never fails because of one.

        Raises:
            ToolFailure: the scope names a server that does not exist or may not be used.
        """
        ...

    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        """Return the current tools of a scope that has `tools`: the same object if nothing has changed.

        Does not wait for servers that are connecting, and only briefly for one that has announced changed tools.
        """
        ...

    async def release(self, scope: ToolScope) -> None:
        """Close what was opened for a scope alone; its tools are no longer used."""
        ...


@record
class FixedTools(ToolSource):
    """The same tools for every session."""

    tool_set: ToolSet

    @override
    async def tools(self, scope: ToolScope) -> ToolSet:
        return self.tool_set

    @override
    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        return tools

    @override
    async def release(self, scope: ToolScope) -> None: ...
