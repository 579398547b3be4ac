"""The definition of a subagent: a Markdown file with front matter, in the form of Gemini CLI or of Claude Code. Pure.

The text below the front matter is the subagent's system prompt. Nothing in the file gives a subagent more than the
session has that begins it: it works with the session's tools or fewer, in the session's approval mode or ``plan``.
"""

import re
from typing import Any, cast

from isthmus.record import record
from isthmus.text.front_matter import split_front_matter, text_of

MAXIMUM_NAME = 64
"""Maximum length of a name in characters."""
MAXIMUM_DESCRIPTION = 1_024
"""Maximum length of a description in characters; the rest is cut, since every request has it."""
MAXIMUM_INSTRUCTIONS = 64_000
"""Maximum length of the instructions in characters."""
MAXIMUM_MINUTES = 24 * 60
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
_INHERITED = frozenset(("inherit", "default", "sonnet", "opus", "haiku"))
"""Words for a model that mean the model of the session here: Claude Code's name no model of other programs."""
_USED = frozenset(
    (
        *("name", "description", "kind", "display_name", "color", "tools", "disallowedTools", "model"),
        *("max_turns", "maxTurns", "timeout_mins", "permissionMode"),
    )
)
_PLAN = "plan"


@record
class SubagentDefinition:
    """A subagent by its ``name``.

    ``tools`` are the tools that it may use, None for all, and ``refused_tools`` those that it may not; both as written.
    ``max_turns`` is the maximum number of model messages, ``minutes`` that of its work without a question; None for the
    usual ones. ``only_plans``: it works in the approval mode ``plan``. ``source`` says where it is from; ``unused``
    are the keys that have no effect here.
    """

    name: str
    description: str
    instructions: str
    tools: tuple[str, ...] | None = None
    refused_tools: tuple[str, ...] = ()
    model: str | None = None
    max_turns: int | None = None
    minutes: int | None = None
    only_plans: bool = False
    source: str = ""
    unused: tuple[str, ...] = ()


def read_definition(text: str, default_name: str, source: str) -> SubagentDefinition:
    """Return the definition in the text of a file; ``default_name`` is the name of the file without its extension.

    Raises:
        ValueError: it cannot be used; the text says why.
    """
    values, body = split_front_matter(text)
    if "agent_card_url" in values or "agent_card_json" in values or values.get("kind", "local") != "local":
        raise ValueError("expected kind: local; agents at other addresses are not supported")
    if values.get("hooks"):
        raise ValueError("hooks: they are not applied to subagents, and may be guards; put them into the settings")
    name = text_of(values, "name") or default_name
    if _NAME.fullmatch(name) is None or len(name) > MAXIMUM_NAME:
        raise ValueError(f"name: expected at most {MAXIMUM_NAME} letters, digits, '_' and '-', received {name[:100]!r}")
    description = text_of(values, "description")
    if not description:
        raise ValueError("description: expected a text that says when the subagent is of use")
    instructions = body.strip()
    if not 0 < len(instructions) <= MAXIMUM_INSTRUCTIONS:
        raise ValueError(f"expected 1 to {MAXIMUM_INSTRUCTIONS} characters of instructions below the front matter")
    model = text_of(values, "model")
    return SubagentDefinition(
        name,
        description[:MAXIMUM_DESCRIPTION],
        instructions,
        _names(values, "tools"),
        _names(values, "disallowedTools") or (),
        None if model.casefold() in _INHERITED or not model else model,
        _number(values, "max_turns", _number(values, "maxTurns", None)),
        _number(values, "timeout_mins", None, MAXIMUM_MINUTES),
        text_of(values, "permissionMode") == _PLAN,
        source,
        tuple(sorted(values.keys() - _USED)),
    )


def _names(values: dict[str, Any], key: str) -> tuple[str, ...] | None:
    """Return names from a list or a text with commas; None if there are none to choose from, or all are meant."""
    value = values.get(key)
    if value is None:
        return None
    items = value.split(",") if isinstance(value, str) else cast("object", value)
    if not isinstance(items, list) or not all(isinstance(item, str) for item in cast("list[object]", items)):
        raise ValueError(f"{key}: expected names of tools, as a list or with commas")
    names = tuple(name for item in cast("list[str]", items) if (name := item.strip()))
    if limited := next((name for name in names if "(" in name), None):
        raise ValueError(f"{key}: {limited[:100]!r}: expected the name of a tool alone; write limits as policies")
    return None if key == "tools" and "*" in names else names


def _number(values: dict[str, Any], key: str, default: int | None, maximum: int = 10_000) -> int | None:
    value = values.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= maximum:
        raise ValueError(f"{key}: expected a whole number from 1 to {maximum}, received {str(value)[:50]!r}")
    return value
