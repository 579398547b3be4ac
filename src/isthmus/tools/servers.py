"""The ToolServers port: the MCP servers of a session, as slash commands show and manage them.

Implemented by the MCP host. Deliberately not here: protocols, processes, configuration files.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from isthmus.tools.base import ToolScope

REQUIRED_MISSING = "mcp_required"
"""Reason of a task that failed before it began, since a required MCP server is not connected."""


class ServerState(StrEnum):
    """How a server stands."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    NEEDS_LOGIN = "needs login"
    DISABLED = "disabled"


class DiscoveryState(StrEnum):
    """How far it is with finding out what all the servers of a workspace offer, with spec 4's names."""

    NOT_STARTED = "NOT_STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    """Each server has answered or failed; those that start at their first call are not waited for."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server. ``name`` is the one that the model uses, ``parameters`` its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server as it stands. ``problem`` says why it is not connected, or which of its tools were dropped and why.

    ``summary`` are lines on how it is reached, without secrets. ``notes`` are further lines, such as where its
    configuration or its list of tools comes from. ``is_container``: it runs in a container of its own.
    ``is_missing``: it is to be used, and nothing of it is offered now.
    ``is_file``: it is no server, but stands for a file of them that cannot be read, as `problem` says.
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
        """Return the configured servers, in configuration order, as they stand now."""
        ...

    async def discovery(self, scope: ToolScope) -> DiscoveryState:
        """How far discovery is in the scope's workspace; starts nothing."""
        ...

    async def refresh(self, scope: ToolScope, name: str | None = None) -> Sequence[ServerStatus]:
        """Connect anew and list anew, one server or all; returns when each has answered or its deadline has passed.

        Raises:
            ToolFailure: no server has that name.
        """
        ...

    async def restart(self, scope: ToolScope, name: str) -> Sequence[ServerStatus]:
        """End a server's program, or its session at a URL, and connect anew, whatever it is in the middle of.

        Raises:
            ToolFailure: no server has that name, or it is not in use.
        """
        ...

    async def set_enabled(self, scope: ToolScope, name: str, *, is_enabled: bool) -> Sequence[ServerStatus]:
        """Use a server, or do not use it, from now on and in every session to come; returns when that has come true.

        Raises:
            ToolFailure: no server has that name, or it cannot be kept.
        """
        ...

    def login(self, scope: ToolScope, name: str) -> AsyncGenerator[str, None]:
        """Log in to a server, telling on the way what the user has to do and how it ended.

        Where no browser is at hand it ends with the page to open; the login then waits some minutes for its answer.

        Raises:
            ToolFailure: no server has that name, or the login failed.
        """
        ...

    def paste(self, scope: ToolScope, name: str, text: str) -> AsyncGenerator[str, None]:
        """Go on with a login that waits, with the address that the user's browser ended at; tells how it ended.

        Raises:
            ToolFailure: no login waits, the text is no answer to it, or it failed.
        """
        ...

    async def logout(self, scope: ToolScope, name: str) -> str:
        """Forget the login to a server, and tell the server so where it can be told; says what was done.

        Raises:
            ToolFailure: no server has that name, or the login cannot be forgotten.
        """
        ...
