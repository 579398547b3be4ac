"""The listing of a server, repaired and bounded, before configuration and providers restrict it.

This form is kept from one start to the next. Pure. Deliberately not here: the choice of usable entries
(:mod:`isthmus.mcp_host.catalogue.catalogue`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.tools.server_contents import ServerPrompt, ServerResource


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as the server lists it. ``input_schema`` is the server's JSON.

    ``result_characters`` is the number of characters of its results that are of use.
    """

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
