"""The ToolServers port: the MCP servers of a session, as slash commands show and manage them.

The MCP host implements it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from isthmus.record import record
from isthmus.tools.port.tool_set import ToolScope

REQUIRED_MISSING = "mcp_required"
"""Reason of a task that failed before it started because a required MCP server is not connected."""


class ServerState(StrEnum):
    """State of the connection to a server."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    NEEDS_LOGIN = "needs login"
    DISABLED = "disabled"


class DiscoveryState(StrEnum):
    """State of the discovery of all servers of a workspace, with the names of Gemini CLI's MCP documentation."""

    NOT_STARTED = "NOT_STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    """Each server has answered or failed, except those that start at their first call."""


@record
class ServerTool:
    """A tool of a server, with the name that the model uses and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@record
class ServerStatus:
    """Status of a server. ``problem`` is why it is not connected, or why tools were dropped; warnings follow in lines.

    ``summary`` describes its command or URL in lines, without secrets. ``notes`` are further lines, such as the source
    of its configuration or of its list of tools. ``is_container``: it runs in a container of its own.
    ``is_missing``: it is enabled, but offers nothing now.
    ``is_file``: it represents a configuration file that cannot be read, for the reason in ``problem``.
    """

    name: str
    state: ServerState
    transport: str = ""
    description: str = ""
    tools: tuple[ServerTool, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    problem: str | None = None
    summary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_container: bool = False
    is_missing: bool = False
    is_file: bool = False


class ToolServers(Protocol):
    """The MCP servers of sessions. Every wait inside has a deadline."""

    async def servers(self, scope: ToolScope) -> Sequence[ServerStatus]:
        """Return the current status of the configured servers, in configuration order."""
        ...

    async def discovery(self, scope: ToolScope) -> DiscoveryState:
        """Return the state of discovery in the scope's workspace, without starting it."""
        ...

    async def refresh(self, scope: ToolScope, name: str | None = None) -> Sequence[ServerStatus]:
        """Reconnect to one server or all and list their tools again.

        Returns when each server has answered or its deadline has passed.

        Raises:
            ToolFailure: no server has that name.
        """
        ...

    async def restart(self, scope: ToolScope, name: str) -> Sequence[ServerStatus]:
        """End a server's process, or its session at a URL, and reconnect, even during a call.

        Raises:
            ToolFailure: no server has that name, or it is not in use.
        """
        ...

    async def set_enabled(self, scope: ToolScope, name: str, *, is_enabled: bool) -> Sequence[ServerStatus]:
        """Enable or disable a server for this and all future sessions; returns when the change has taken effect.

        Raises:
            ToolFailure: no server has that name, or the setting cannot be stored.
        """
        ...

    def login(self, scope: ToolScope, name: str) -> AsyncGenerator[str, None]:
        """Log in to a server, and yield texts that tell the user what to do and how the login ended.

        Without a browser it ends with the page to open; the login then waits some minutes for the redirect.

        Raises:
            ToolFailure: no server has that name, or the login failed.
        """
        ...

    def paste(self, scope: ToolScope, name: str, text: str) -> AsyncGenerator[str, None]:
        """Continue a waiting login with the address at which the user's browser ended; yield how the login ended.

        Raises:
            ToolFailure: no login is waiting, the text is not an address of this login, or the login failed.
        """
        ...

    async def logout(self, scope: ToolScope, name: str) -> str:
        """Forget the login to a server, revoke it there if possible, and return a description of what was done.

        Raises:
            ToolFailure: no server has that name, or the login cannot be forgotten.
        """
        ...
