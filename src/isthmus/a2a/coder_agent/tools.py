"""The tools as the dialect ``coderAgent`` describes them, whole with their schemas in every update of a call.

What clients show (``displayName``, ``kind``) is as gemini-cli-a2a-server has it for the tools of Gemini CLI, which ours
are named after. Deliberately not here: what tools do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from isthmus.a2a.coder_agent.vocabulary import DetailsType, details_type
from isthmus.a2a.wire import JsonDict
from isthmus.development_tool import ToolCall


@dataclass(frozen=True, slots=True)
class Face:
    """How clients show a tool. ``kind``: read, edit, delete, move, search, execute, think, fetch or other."""

    display_name: str
    kind: str
    is_markdown: bool = True
    has_live_output: bool = False


FACES: Mapping[str, Face] = MappingProxyType(
    {
        "list_directory": Face("ReadFolder", "search"),
        "read_file": Face("ReadFile", "read"),
        "read_many_files": Face("ReadManyFiles", "read"),
        "grep_search": Face("SearchText", "search"),
        "glob": Face("FindFiles", "search"),
        "replace": Face("Edit", "edit"),
        "write_file": Face("WriteFile", "edit"),
        "run_shell_command": Face("Shell", "execute", is_markdown=False, has_live_output=True),
        "web_fetch": Face("WebFetch", "fetch"),
        "google_web_search": Face("GoogleSearch", "search"),
        "save_memory": Face("SaveMemory", "think"),
        "write_todos": Face("WriteTodos", "other"),
    }
)
_KINDS = {DetailsType.EDIT: "edit", DetailsType.EXEC: "execute", DetailsType.MCP: "other", DetailsType.INFO: "other"}


def describe_tool(call: ToolCall) -> JsonDict:
    """Return the ``tool`` of a call. One that is not built in has what the call itself tells, and an empty schema."""
    known = _builtin().get(call.tool_name)
    if known is not None:
        return known
    asked = call.confirmation_request
    kind = "other" if asked is None else _KINDS[details_type(asked.details)]
    face = FACES.get(call.tool_name, Face(call.tool_name, kind))
    return _described(call.tool_name, call.description or "", face, {"type": "object"})


def available_tools() -> list[JsonDict]:
    """Return the built-in tools in the short form of task metadata."""
    return [
        {"name": tool["name"], "description": tool["description"], "parameterSchema": tool["parameterSchema"]}
        for tool in _builtin().values()
    ]


@cache
def _builtin() -> Mapping[str, JsonDict]:
    # The tools bring much along: it is loaded when a client of this dialect comes.
    from isthmus.tools.builtin import builtin_tools

    found: dict[str, JsonDict] = {}
    for name, tool in builtin_tools().tools.items():
        face = FACES.get(name, Face(name, tool.kind.value))
        found[name] = _described(name, tool.description, face, tool.parameters)
    return found


def _described(name: str, description: str, face: Face, schema: Mapping[str, object]) -> JsonDict:
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
