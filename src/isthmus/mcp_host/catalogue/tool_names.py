"""The names of MCP tools for the model: filtered, valid and unique (Gemini CLI: "Tool Discovery").

Pure. A tool keeps its own name unless an earlier tool, in the order of the configuration, has the same name; then its
name is ``server__tool``. A name that the model has seen stays with its tool as long as the agent runs. A server that
connects late can therefore not take over permissions or calls that were meant for another server's tool.
"""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

MAXIMUM_NAME = 63
"""Maximum number of characters of a name; a longer name is cut in the middle."""

REVIEW_TOOLS = ("openDiff", "closeDiff")
"""Tools by which an IDE companion shows an edit of the agent; they are not offered to models."""

_INVALID = re.compile(r"[^A-Za-z0-9_.-]")

ToolKey: TypeAlias = tuple[str, str]
"""A server's name, and the server's own name for the tool."""


def is_included(tool: str, include: Collection[str] | None, exclude: Collection[str]) -> bool:
    """Return whether includeTools and excludeTools include `tool`; exclude wins. ``tool(...)`` counts as ``tool``."""
    if tool in set(map(tool_named, exclude)):
        return False
    return include is None or tool in set(map(tool_named, include))


def tool_named(entry: str) -> str:
    """Return the tool named by an entry of includeTools or excludeTools; ``tool(...)`` counts as ``tool``."""
    return entry.partition("(")[0]


def valid_name(name: str) -> str:
    """Return `name` with all characters but letters, digits, ``_``, ``.`` and ``-`` replaced by ``_``.

    The result begins with a letter or ``_``, and has at most 63 characters. A name in another script than the Latin one
    would lose what tells it from others, so it ends with the beginning of its digest.
    """
    valid = _INVALID.sub("_", name)
    if not valid or not (valid[0].isalpha() or valid[0] == "_"):
        valid = f"_{valid}"
    if not any(map(_is_of_another_script, name)):
        return shortened(valid)
    end = f"_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return shortened(valid, MAXIMUM_NAME - len(end)) + end


def _is_of_another_script(character: str) -> bool:
    """Return whether a letter, digit or symbol has no ASCII character as its base, as ``\u00fc`` has ``u``."""
    if character.isascii() or unicodedata.category(character)[0] not in "LNS":
        return False
    return not unicodedata.normalize("NFKD", character)[0].isascii()


def shortened(name: str, maximum: int = MAXIMUM_NAME) -> str:
    """Return `name`, cut in the middle with ``___`` if it is too long."""
    if len(name) <= maximum:
        return name
    kept = maximum - 3
    return f"{name[: (kept + 1) // 2]}___{name[len(name) - kept // 2 :]}"


def assign_names(
    tools: Iterable[ToolKey], reserved: Collection[str], given: Mapping[ToolKey, str]
) -> dict[ToolKey, str]:
    """Return a name for each tool. `tools` are in the order of the configuration.

    `reserved` are the names of the built-in tools; `given` are names that the model has seen, which do not change.
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
