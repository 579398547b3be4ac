"""The names of MCP tools for the model: filtered, made valid, and never two alike (Gemini CLI: "Tool Discovery").

Pure. A tool keeps its own name when nobody before it has it, in the order of the configuration; else it is
``server__tool``. A name that the model has seen is kept for its tool as long as the agent runs, so that a server that
comes late never takes over what was granted or asked for under another's name.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

MAXIMUM_NAME = 63
"""Characters; what is longer is cut in the middle."""

REVIEW_TOOLS = ("openDiff", "closeDiff")
"""Tools by which an IDE companion shows an edit of the agent; no model calls them."""

_INVALID = re.compile(r"[^A-Za-z0-9_.-]")

ToolKey: TypeAlias = tuple[str, str]
"""A server's name, and the name that the server itself has for the tool."""


def is_included(tool: str, include: Collection[str] | None, exclude: Collection[str]) -> bool:
    """Return whether includeTools and excludeTools leave `tool` in; exclude wins. ``tool(...)`` counts as ``tool``."""
    if tool in set(map(tool_named, exclude)):
        return False
    return include is None or tool in set(map(tool_named, include))


def tool_named(entry: str) -> str:
    """Return the tool that an entry of includeTools or excludeTools names: ``tool(...)`` counts as ``tool``."""
    return entry.partition("(")[0]


def valid_name(name: str) -> str:
    """Return `name` with ``_`` for all but letters, digits, ``_``, ``.`` and ``-``.

    The result begins with a letter or ``_``, and has at most 63 characters.
    """
    valid = _INVALID.sub("_", name)
    if not valid or not (valid[0].isalpha() or valid[0] == "_"):
        valid = f"_{valid}"
    return shortened(valid)


def shortened(name: str, maximum: int = MAXIMUM_NAME) -> str:
    """`name`, cut in the middle with ``___`` when it is too long."""
    if len(name) <= maximum:
        return name
    kept = maximum - 3
    return f"{name[: (kept + 1) // 2]}___{name[len(name) - kept // 2 :]}"


def assign_names(
    tools: Iterable[ToolKey], reserved: Collection[str], given: Mapping[ToolKey, str]
) -> dict[ToolKey, str]:
    """Return a name for each tool, in the order of `tools`, which is the configuration's.

    `reserved` are the built-in tools' names; `given` are names that were shown before, which stay with their tools.
    """
    taken = {*reserved, *given.values()}
    names: dict[ToolKey, str] = {}
    for key in tools:
        if key in names:
            continue
        name = given.get(key)
        if name is None:
            name = _free_name(key, taken)
            taken.add(name)
        names[key] = name
    return names


def _free_name(key: ToolKey, taken: Collection[str]) -> str:
    server, tool = key
    candidates = [valid_name(tool), valid_name(f"{server}__{tool}")]
    for name in candidates:
        if name not in taken:
            return name
    number = 2
    while True:
        end = f"_{number}"
        name = shortened(candidates[1], MAXIMUM_NAME - len(end)) + end
        if name not in taken:
            return name
        number += 1
