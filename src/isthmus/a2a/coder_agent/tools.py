"""Descriptions of tools in the dialect ``coderAgent``, which sends them with their schemas in every update of a call.

``displayName`` and ``kind``, which clients show, are gemini-cli-a2a-server's for the tools of Gemini CLI; our tools
have the same names.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from isthmus.a2a.coder_agent.vocabulary import DetailsType, details_type
from isthmus.a2a.wire import JsonDict
from isthmus.development_tool import ToolCall
from isthmus.record import record


@record
class ToolDisplay:
    """Display of a tool in clients. ``kind``: read, edit, delete, move, search, execute, think, fetch or other."""

    display_name: str
    kind: str
    is_markdown: bool = True
    has_live_output: bool = False


TOOL_DISPLAYS: Mapping[str, ToolDisplay] = MappingProxyType(
    {
        "list_directory": ToolDisplay("ReadFolder", "search"),
        "read_file": ToolDisplay("ReadFile", "read"),
        "read_many_files": ToolDisplay("ReadManyFiles", "read"),
        "grep_search": ToolDisplay("SearchText", "search"),
        "glob": ToolDisplay("FindFiles", "search"),
        "replace": ToolDisplay("Edit", "edit"),
        "write_file": ToolDisplay("WriteFile", "edit"),
        "run_shell_command": ToolDisplay("Shell", "execute", is_markdown=False, has_live_output=True),
        "web_fetch": ToolDisplay("WebFetch", "fetch"),
        "google_web_search": ToolDisplay("GoogleSearch", "search"),
        "save_memory": ToolDisplay("SaveMemory", "think"),
        "ask_user": ToolDisplay("AskUser", "other"),
        "write_todos": ToolDisplay("WriteTodos", "other"),
    }
)
_KINDS = {DetailsType.EDIT: "edit", DetailsType.EXEC: "execute", DetailsType.MCP: "other", DetailsType.INFO: "other"}


def describe_tool(call: ToolCall) -> JsonDict:
    """Return the ``tool`` of a call; for a tool that is not built in, with data of the call and an empty schema."""
    known = _builtin().get(call.tool_name)
    if known is not None:
        return known
    asked = call.confirmation_request
    kind = "other" if asked is None else _KINDS[details_type(asked.details)]
    face = TOOL_DISPLAYS.get(call.tool_name, ToolDisplay(call.tool_name, kind))

    return _describe(call.tool_name, call.description or "", face, {"type": "object"})


def available_tools() -> list[JsonDict]:
    """Return the built-in tools in the short form of task metadata."""
    return [
        {"name": tool["name"], "description": tool["description"], "parameterSchema": tool["parameterSchema"]}
        for tool in _builtin().values()
    ]


@cache
def _builtin() -> Mapping[str, JsonDict]:
    # The tools have heavy imports, so they are loaded only when a client of this dialect connects.
    from isthmus.tools.builtin import builtin_tools

    found: dict[str, JsonDict] = {}
    for name, tool in builtin_tools().tools.items():
        face = TOOL_DISPLAYS.get(name, ToolDisplay(name, tool.kind.value))
        found[name] = _describe(name, tool.description, face, tool.parameters)
    return found


def _describe(name: str, description: str, face: ToolDisplay, schema: Mapping[str, object]) -> JsonDict:
    return {
        "name": name,
        "displayName": face.display_name,
        "description": description,
        "kind": face.kind,
        "isOutputMarkdown": face.is_markdown,
        "canUpdateOutput": face.has_live_output,
        "schema": {"name": name, "description": description, "parametersJsonSchema": schema},
        "parameterSchema": schema,
    }
