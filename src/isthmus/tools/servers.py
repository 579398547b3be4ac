"""The ToolServers port: the MCP servers of a session, as slash commands show and manage them.

Implemented by the MCP host. Deliberately not here: protocols, processes, configuration files.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from isthmus.tools.base import ToolScope


class ServerState(StrEnum):
    """How a server stands."""

    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    NEEDS_LOGIN = "needs login"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server. ``name`` is the one that the model uses, ``parameters`` its JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server as it stands. ``problem`` says why it is not connected, or which of its tools were dropped and why.

    ``summary`` are lines on how it is reached, without secrets.
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


class ToolServers(Protocol):
    """The MCP servers of sessions. Every wait inside has a deadline."""

    async def servers(self, scope: ToolScope) -> Sequence[ServerStatus]:
        """The configured servers, in configuration order, as they stand now."""
        ...

    async def refresh(self, scope: ToolScope, name: str | None = None) -> Sequence[ServerStatus]:
        """Connect anew and list anew, one server or all; returns when each has answered or its deadline has passed.

        Raises:
            ToolFailure: no server has that name.
        """
        ...

    def login(self, scope: ToolScope, name: str) -> AsyncGenerator[str, None]:
        """Log in to a server, telling on the way what the person has to do and how it ended.

        Raises:
            ToolFailure: no server has that name, or the login failed.
        """
        ...
