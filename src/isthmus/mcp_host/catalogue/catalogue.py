"""The catalogue of a server: its usable tools, its prompts and its resources."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from isthmus.mcp_host.catalogue.listing import ListedTool, Listing
from isthmus.mcp_host.catalogue.schema import (
    Nodes,
    UnusableSchemaError,
    full_schema,
    usable_schema,
    without_refused_names,
)
from isthmus.mcp_host.catalogue.tool_names import REVIEW_TOOLS, is_included, tool_named
from isthmus.mcp_host.results.result import clean
from isthmus.record import record
from isthmus.tools.port.server_contents import ServerPrompt, ServerResource

MAXIMUM_DESCRIPTION = 10_000
"""Maximum number of characters of a description that reach the model."""
MAXIMUM_NAME = 1_000
"""Maximum number of characters of a tool's name; a tool with a longer one is left out."""
SHOWN_NAME = 80
"""Number of characters of a tool's name in a message."""
MAXIMUM_DROPPED = 50
"""Maximum number of messages about tools that are left out; further ones are only counted."""
SHOWN_NAMES = 10
"""Maximum number of names of tools in a message."""


@record
class CatalogueTool:
    """A tool under the server's own name. The hints (read-only, idempotent, destructive) are the server's claims."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    is_read_only: bool = False
    is_idempotent: bool = False
    is_destructive: bool = False
    version: str = ""
    """Hash of the server's name, description, schema and hints of the tool."""
    result_characters: int | None = None
    """Maximum number of characters of its results, if the server sets one."""
    output_schema: Mapping[str, Any] | None = None
    """The server's schema of its structured content."""
    full_parameters: Mapping[str, Any] | None = None
    """The parameters as complete JSON Schema; None if it does not differ from `parameters` or is too large."""


@record
class Catalogue:
    """The usable part of a listing. ``dropped`` contains messages about tools that cannot be used fully or at all."""

    tools: tuple[CatalogueTool, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    instructions: str = ""
    dropped: tuple[str, ...] = ()
    server: str = ""
    """The server's own name and version."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to use: no tool, prompt or resource."""
        return not (self.tools or self.prompts or self.resources)


def catalogue_of(listing: Listing, include: tuple[str, ...] | None, exclude: tuple[str, ...]) -> Catalogue:
    """Return the usable part of a listing that the configuration allows."""
    tools, unusable = usable_tools(listing.tools, include, exclude)
    instructions, dropped = clean(listing.instructions), (*listing.dropped, *unusable)
    return Catalogue(tools, listing.prompts, listing.resources, instructions, dropped, listing.server)


def usable_tools(
    listed: tuple[ListedTool, ...], include: tuple[str, ...] | None, exclude: tuple[str, ...]
) -> tuple[tuple[CatalogueTool, ...], tuple[str, ...]]:
    """Return the tools with a usable schema that the configuration includes, and messages about the others."""
    tools: dict[str, CatalogueTool] = {}
    dropped = [*_unknown_names("includeTools", include or (), listed), *_unknown_names("excludeTools", exclude, listed)]
    nodes, full_nodes = Nodes(), Nodes()
    is_editor = {tool.name for tool in listed} >= set(REVIEW_TOOLS)
    for tool in listed:
        shown = tool.name[:SHOWN_NAME]
        if is_editor and tool.name in REVIEW_TOOLS:
            dropped.append(f"{shown}: only the agent itself uses this tool, to have its edits reviewed")
            continue
        if not is_included(tool.name, include, exclude):
            continue
        if len(tool.name) > MAXIMUM_NAME:
            dropped.append(f"{shown}...: its name has {len(tool.name):,} characters")
            continue
        if tool.name in tools:
            dropped.append(f"{shown}: it is listed twice")
            continue
        try:
            parameters, left_out = without_refused_names(usable_schema(tool.input_schema, nodes))
        except UnusableSchemaError as error:
            dropped.append(f"{shown}: {error}")
            continue
        if left_out:
            names = ", ".join(repr(name[:80]) for name in left_out)
            dropped.append(f"{shown}: offered without the parameters {names}: not every provider accepts such names")
        tools[tool.name] = CatalogueTool(
            tool.name,
            clean(tool.description)[:MAXIMUM_DESCRIPTION],
            parameters,
            tool.is_read_only,
            tool.is_idempotent,
            tool.is_destructive,
            _version(tool),
            tool.result_characters,
            tool.output_schema,
            _full(tool.input_schema, parameters, full_nodes),
        )
    if len(dropped) > MAXIMUM_DROPPED:
        dropped[MAXIMUM_DROPPED:] = [f"and {len(dropped) - MAXIMUM_DROPPED:,} more"]
    return tuple(tools.values()), tuple(dropped)


def _full(given: Mapping[str, Any], parameters: Mapping[str, Any], nodes: Nodes) -> Mapping[str, Any] | None:
    """Return the complete schema; None if it does not differ from `parameters` or is too large."""
    try:
        found, _ = without_refused_names(full_schema(given, nodes))
    except UnusableSchemaError:
        return None
    return None if found == parameters else found


def _unknown_names(key: str, names: Collection[str], listed: tuple[ListedTool, ...]) -> Iterator[str]:
    """Yield a message about names in the settings that no tool has: a misspelled name changes the choice of tools."""
    found = [tool.name for tool in listed]
    unknown = [repr(name[:80]) for name in dict.fromkeys(map(tool_named, names)) if name not in found]
    if found and unknown:
        more = f" and {len(found) - SHOWN_NAMES} more" if len(found) > SHOWN_NAMES else ""
        has = ", ".join(name[:80] for name in found[:SHOWN_NAMES]) + more
        yield f"{key} names {', '.join(unknown[:SHOWN_NAMES])}, which it does not have; it has: {has}"


def _version(tool: ListedTool) -> str:
    hints = (tool.is_read_only, tool.is_idempotent, tool.is_destructive)
    definition = (tool.name, tool.description, tool.input_schema, *hints)
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:32]
