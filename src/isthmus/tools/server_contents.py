"""The ServerContents port: the prompts and resources of a session's MCP servers, for slash commands and for prompts.

Implemented by the MCP host. Deliberately not here: tools (:mod:`isthmus.tools.base`), and how servers stand
(:mod:`isthmus.tools.servers`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from isthmus.tools.base import Content, ToolScope


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a server's prompt."""

    name: str
    description: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ServerPrompt:
    """A prompt of a server, under the server's own name for it."""

    server: str
    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerResource:
    """A resource that a server lists; ``uri`` is the server's. ``is_template``: a URI template, to be filled in."""

    server: str
    uri: str
    name: str = ""
    description: str = ""
    media_type: str | None = None
    is_template: bool = False


@dataclass(frozen=True, slots=True)
class ServerInstructions:
    """What a server says of how it is to be used: its own words, as they came."""

    server: str
    text: str


class ServerContents(Protocol):
    """What the MCP servers of sessions have besides tools. Every wait inside has a deadline."""

    async def server_names(self, scope: ToolScope) -> Sequence[str]:
        """The names of the session's servers, in configuration order: also of those that are off or cannot be used."""
        ...

    async def instructions(self, scope: ToolScope) -> Sequence[ServerInstructions]:
        """Return the instructions of the session's servers, in configuration order, as far as they are known now."""
        ...

    async def prompts(self, scope: ToolScope) -> Sequence[ServerPrompt]:
        """Return the prompts of the session's servers, in configuration order, as far as they are known.

        Waits for servers that are still connecting as a turn does: a little, once.
        """
        ...

    async def get_prompt(
        self, scope: ToolScope, server: str, name: str, arguments: Mapping[str, str], folder: Path
    ) -> Content:
        """Return a server's prompt with its arguments filled in; what is no text is kept in ``folder``.

        Raises:
            ToolFailure: the server or prompt is not there, or the server refused; the text says why.
        """
        ...

    async def resources(self, scope: ToolScope) -> Sequence[ServerResource]:
        """Return the resources that the session's servers list, as far as they are known now."""
        ...

    async def read_resource(self, scope: ToolScope, server: str, uri: str, folder: Path) -> Content:
        """Return the contents of a resource, cut where they are too long; what is no text, and the whole, is kept in
        ``folder``.

        Raises:
            ToolFailure: the server is not there or not connected, or it has no such resource.
        """
        ...

    async def complete(
        self, scope: ToolScope, prompt: ServerPrompt, argument: str, typed: str, given: Mapping[str, str]
    ) -> Sequence[str]:
        """What the server suggests for an argument of a prompt that was begun; empty when it suggests nothing."""
        ...
