"""The ServerContents port: the prompts and resources of a session's MCP servers, for slash commands and for prompts.

The MCP host implements it. Does not contain tools (see :mod:`isthmus.tools.port.base`) or the state of servers (see
:mod:`isthmus.tools.port.servers`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from isthmus.record import record
from isthmus.tools.port.base import Content
from isthmus.tools.port.tool_set import ToolScope


@record
class PromptArgument:
    """An argument of a server's prompt."""

    name: str
    description: str = ""
    is_required: bool = False


@record
class ServerPrompt:
    """A prompt of a server, with the server's name for it."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@record
class ServerResource:
    """A resource that a server lists. ``is_template``: ``uri`` is a URI template, to be filled in."""

    server: str
    uri: str
    name: str = ""
    description: str = ""
    media_type: str | None = None
    is_template: bool = False


@record
class ServerInstructions:
    """A server's instructions for its use, unchanged."""

    server: str
    text: str


class ServerContents(Protocol):
    """Contents of the MCP servers of sessions other than tools. Every wait inside has a deadline."""

    async def server_names(self, scope: ToolScope) -> Sequence[str]:
        """Return the names of the session's servers in configuration order, including disabled and unusable ones."""
        ...

    async def instructions(self, scope: ToolScope) -> Sequence[ServerInstructions]:
        """Return the instructions of the session's servers that are known now, in configuration order."""
        ...

    async def prompts(self, scope: ToolScope) -> Sequence[ServerPrompt]:
        """Return the known prompts of the session's servers, in configuration order.

        Waits for servers that are still connecting as a turn does: for a short time, and only once.
        """
        ...

    async def get_prompt(
        self, scope: ToolScope, server: str, name: str, arguments: Mapping[str, str], folder: Path
    ) -> Content:
        """Return a server's prompt with its arguments filled in; non-text parts are written to ``folder``.

        Raises:
            ToolFailure: the server or the prompt is missing, or the server refused; the text contains the reason.
        """
        ...

    async def resources(self, scope: ToolScope) -> Sequence[ServerResource]:
        """Return the resources of the session's servers that are known now."""
        ...

    async def read_resource(self, scope: ToolScope, server: str, uri: str, folder: Path) -> Content:
        """Return the contents of a resource, cut if they are too long.

        Non-text contents and the full text of cut ones are written to ``folder``.

        Raises:
            ToolFailure: the server is missing or not connected, or has no such resource.
        """
        ...

    async def complete(
        self, scope: ToolScope, prompt: ServerPrompt, argument: str, typed: str, given: Mapping[str, str]
    ) -> Sequence[str]:
        """Return the server's suggestions to complete an argument of a prompt; empty if there are none."""
        ...
