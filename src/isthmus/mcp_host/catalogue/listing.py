"""The listing of a server, repaired and bounded, before configuration and providers restrict it.

This form is cached from one start to the next. Pure. Not here: the choice of usable entries, see
:mod:`isthmus.mcp_host.catalogue.catalogue`.
"""

from collections.abc import Mapping
from typing import Any

from isthmus.record import record
from isthmus.tools.port.server_contents import ServerPrompt, ServerResource


@record
class ListedTool:
    """A tool as the server lists it. ``input_schema`` is the server's JSON.

    ``result_characters`` is the maximum number of characters of its results, if the server sets one.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    is_read_only: bool = False
    is_idempotent: bool = False
    is_destructive: bool = False
    result_characters: int | None = None
    output_schema: Mapping[str, Any] | None = None


@record
class Listing:
    """Everything that a server lists.

    ``server`` is its own name and version. ``dropped`` contains messages about invalid entries. ``discovered`` is the
    description of itself that a server without a handshake sent, as JSON of MCP; None for all other servers.
    """

    tools: tuple[ListedTool, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    instructions: str = ""
    server: str = ""
    dropped: tuple[str, ...] = ()
    discovered: Mapping[str, Any] | None = None
