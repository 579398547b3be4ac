"""call_tool: calls a tool that is not in the list of a session, since it came later or was searched for.

The list of a session stays as it was, because providers cache it. A call with arguments is the other tool's in all that
follows (:mod:`isthmus.agent.session.meant_call`); this tool itself runs without them, and describes the other one.
"""

from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.encoding.compact_json import compact_encoder
from isthmus.text.visible import with_ellipsis
from isthmus.tools.port.base import (
    Arguments,
    CallContext,
    Tool,
    ToolContext,
    ToolKind,
    ToolResult,
    ToolSucceeded,
    full_parameters_of,
)
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import CALL_TOOL

MAXIMUM_NAME = 200
"""Maximum length in characters of a name in a message."""

_encode = compact_encoder()


def specification(name: str, description: str, parameters: Mapping[str, Any]) -> str:
    """Return a tool as a line of JSON: its name, its description and the schema of its parameters."""
    text = _encode({"name": name, "description": description, "parameters": dict(parameters)})
    return text.replace("<", "\\u003c")  # A description cannot end what it stands in.


class CallOtherTool:
    """Tool that calls one of ``tools`` by its name."""

    name = CALL_TOOL
    description = (
        "Calls a tool that is not in your list: one that you were told of later, or that a search found. Without "
        "`arguments` it returns what the tool does, and its parameters."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the tool."},
            "arguments": {"type": "object", "description": "Its arguments, as its parameters say."},
        },
        "required": ["name"],
    }
    kind = ToolKind.READ

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools

    def describe(self, arguments: Arguments) -> str:
        """Return the name of the other tool."""
        return f"Look up the tool {with_ellipsis(self._tool(arguments).name, MAXIMUM_NAME)}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return None: there is nothing to confirm."""
        self._tool(arguments)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the description and the parameters of the other tool."""
        tool = self._tool(arguments)
        text = specification(tool.name, tool.description, full_parameters_of(tool))
        return ToolSucceeded(ToolOutput(text=text), f"{text}\nNothing was called: `arguments` were missing.")

    def _tool(self, arguments: Arguments) -> Tool:
        name: object = arguments.get("name")
        if not isinstance(name, str) or not name:
            message = f"{CALL_TOOL}: name: expected the name of a tool, received {name!r:.80}"
            raise ToolFailure(message, "invalid_arguments")
        given = arguments.get("arguments")
        if given is not None:
            message = f"{CALL_TOOL}: arguments: expected a JSON object, received {given!r:.80}"
            raise ToolFailure(message, "invalid_arguments")
        if (tool := self._tools.get(name)) is None:
            message = f"{CALL_TOOL}: name: there is no tool {name[:MAXIMUM_NAME]!r} now"
            raise ToolFailure(message, "invalid_arguments")
        return tool
