"""Changes of what a system prompt and its tools would say, as a text for the model behind the conversation. Pure.

The beginning of a session's requests stays as it is (:mod:`isthmus.agent.session.prompt_prefix`). What reads otherwise
now is compared with what the model knows: the new text of a section, or only the lines that differ; tools that came,
changed or are gone.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from isthmus.agent.session.prompt_prefix import CLOSING, PromptPrefix, spec_to_json
from isthmus.agent.system_prompt import (
    APPENDED,
    FILE,
    FOLDERS,
    INSTRUCTIONS,
    MODE,
    NOTES,
    PART,
    PLACE,
    ROLE,
    STEPS,
    TERMINAL,
    USER,
)
from isthmus.agent.tool_search.call_tool import specification
from isthmus.agent.tool_search.loading import MISSING_SERVERS, SEARCHED_SERVERS
from isthmus.internal_events import PromptChanged, PromptSection
from isthmus.models.port.base import SESSION_UPDATE, ToolSpec
from isthmus.text.diff import unified_diff
from isthmus.text.visible import single_line, with_ellipsis
from isthmus.tools.port.tool_set import CALL_TOOL

DIFF_SHARE = 0.5
"""Share of a new text below which the lines that differ are told instead of all of it."""
MAXIMUM_SPECIFICATIONS = 12_000
"""Maximum length in characters of the tools that are told with their schemas; more are told by name."""
MAXIMUM_NAMED = 100
"""Maximum number of tools that are told by name."""
SHOWN_DESCRIPTION = 200
"""Maximum length in characters of the description of a tool that is told by name."""

_HEADING = "This has changed since your instructions were written, and holds from now on."
_RESET = (
    "The changes that were told before do not hold any more. Your instructions and your list of tools hold as they were"
    " first, and so does what follows."
)
_KEPT = frozenset((ROLE, NOTES))
"""Sections that stay as they are: they say how to work, and change with the version of the program alone."""
_TITLES: Mapping[str, str] = {
    USER: "the user",
    STEPS: "lists of steps",
    TERMINAL: "where your text is shown",
    MODE: "the approval mode, which the user has changed",
    PLACE: "the workspace",
    FOLDERS: "further folders",
    INSTRUCTIONS: "the files of instructions",
    MISSING_SERVERS: "MCP servers that are not available",
    SEARCHED_SERVERS: "MCP servers with tools to search for",
    APPENDED: "additional instructions",
}


def prompt_change(
    prefix: PromptPrefix, sections: Sequence[PromptSection], tools: Sequence[ToolSpec], callable_names: AbstractSet[str]
) -> PromptChanged | None:
    """Return what the model is to be told; None if it knows all.

    Args:
        prefix: the beginning of the requests, and what the model has been told since.
        sections: the system prompt as it would be now.
        tools: the tools that would be sent now.
        callable_names: the names of all tools that can be called now, also those that would not be sent.
    """
    changed = _changed_sections(prefix, sections)
    takes_more = any(tool.name == CALL_TOOL for tool in prefix.tools)
    listed = {tool.name for tool in prefix.tools}
    new = [tool for tool in tools if tool != prefix.known_tools.get(tool.name)]
    new = [tool for tool in new if takes_more or tool.name in listed]
    gone = tuple(name for name in prefix.known_tools if name not in callable_names)
    is_reset = prefix.has_stale_changes
    if not (changed or new or gone or is_reset):
        return None
    pieces = [_section_text(section, prefix.told.get(section.name, "")) for section in changed]
    pieces += _tool_texts(prefix, new, gone)
    body = "\n\n".join(piece.strip("\n") for piece in pieces).replace(CLOSING, "<\\/session_update>")
    text = "\n\n".join(filter(None, (f"{SESSION_UPDATE}\n{_RESET if is_reset else _HEADING}", body))) + f"\n{CLOSING}"
    return PromptChanged(text, tuple(changed), tuple(map(spec_to_json, new)), gone, is_reset)


def _changed_sections(prefix: PromptPrefix, sections: Sequence[PromptSection]) -> list[PromptSection]:
    present = {section.name for section in sections}
    now = [*sections, *(PromptSection(name, "") for name, text in prefix.told.items() if text and name not in present)]
    return [
        section
        for section in now
        if section.name not in _KEPT and section.text.strip() != prefix.told.get(section.name, "").strip()
    ]


def _section_text(section: PromptSection, known: str) -> str:
    title = single_line(_title(section.name))
    old, new = known.strip("\n"), section.text.strip("\n")
    if not new:
        return f"What you were told about {title} does not hold any more."
    if not old:
        return f"About {title}:\n{new}"
    lines = unified_diff(f"{old}\n", f"{new}\n", "text").partition("\n@@")
    difference = f"@@{lines[2]}".rstrip("\n")
    if len(difference) < len(new) * DIFF_SHARE:
        return f"What you were told about {title} has changed; the difference, as a unified diff:\n{difference}"
    return f"This takes the place of what you were told about {title}:\n{new}"


def _title(name: str) -> str:
    if name.startswith(FILE):
        return f"the instructions in {name.removeprefix(FILE)}"
    if name.startswith(PART):
        return f"the part {name.removeprefix(PART)}"
    return _TITLES.get(name, name)


def _tool_texts(prefix: PromptPrefix, new: Sequence[ToolSpec], gone: Sequence[str]) -> list[str]:
    listed = {tool.name: tool for tool in prefix.tools}
    back = [tool.name for tool in new if listed.get(tool.name) == tool]
    changed = [tool for tool in new if tool.name in listed and listed[tool.name] != tool]
    added = [tool for tool in new if tool.name not in listed]
    found: list[str] = []
    if added:
        found.append("\n".join((f"You have more tools. Call them with `{CALL_TOOL}`:", *_tool_lines(added))))
    if changed:
        found.append("\n".join(("These tools of your list have changed, and are now:", *_tool_lines(changed))))
    if back:
        found.append(f"These tools can be called again: {_names(back)}.")
    if gone:
        found.append(f"These tools cannot be called now: {_names(gone)}.")
    return found


def _tool_lines(tools: Sequence[ToolSpec]) -> list[str]:
    lines: list[str] = []
    room = MAXIMUM_SPECIFICATIONS
    for tool in tools:
        whole = specification(tool.name, tool.description, tool.json_schema)
        if len(whole) > room:
            break
        room -= len(whole)
        lines.append(f"- {whole}")
    rest = tools[len(lines) :]
    if rest:
        lines.append(f"And these, whose parameters `{CALL_TOOL}` says if it is called without arguments:")
        lines += [f"- {tool.name}: {_short(tool.description)}" for tool in rest[:MAXIMUM_NAMED]]
    if len(rest) > MAXIMUM_NAMED:
        lines.append(f"- {_names([tool.name for tool in rest[MAXIMUM_NAMED:]])}")
    return lines


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAXIMUM_NAMED])
    return shown if len(names) <= MAXIMUM_NAMED else f"{shown} and {len(names) - MAXIMUM_NAMED} more"


def _short(description: str) -> str:
    return with_ellipsis(single_line(description), SHOWN_DESCRIPTION)
