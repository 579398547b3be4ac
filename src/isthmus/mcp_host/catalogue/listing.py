"""What a server lists, repaired and bounded, before the configuration and the providers have their say.

As it is kept from one start to the next. Pure. Deliberately not here: what of it can be used
(:mod:`isthmus.mcp_host.catalogue.catalogue`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.tools.server_contents import ServerPrompt, ServerResource


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as the server lists it. ``input_schema`` is the JSON that it gave, ``result_characters`` how many
    characters of its results are of use."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    is_read_only: bool = False
    is_idempotent: bool = False
    is_destructive: bool = False
    result_characters: int | None = None
    output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that a server lists. ``server`` is what it calls itself, ``dropped`` says which entries were none.

    ``discovered`` is how a server without a handshake described itself, as JSON of MCP; None for all others.
    """

    tools: tuple[ListedTool, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    instructions: str = ""
    server: str = ""
    dropped: tuple[str, ...] = ()
    discovered: Mapping[str, Any] | None = None
