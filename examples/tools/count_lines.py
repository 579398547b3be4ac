"""A tool of the agent in 50 lines: it counts the lines of a file.

docs/how-to/add-a-tool.md puts it into Isthmus. The description says to the model what it gets, in more than 60
characters.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.tools.port.arguments import CheckedArguments, check_arguments, path_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.content import read_bytes, text_of

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"file_path": path_parameter("The file, absolute or relative to the workspace.")},
    "required": ["file_path"],
}


class CountLines:
    """Counts the lines of a file."""

    name = "count_lines"
    description = "Counts the lines of a text file of the workspace, without reading it into the conversation."
    parameters = PARAMETERS
    kind = ToolKind.READ

    def describe(self, arguments: Arguments) -> str:
        """Describe the call to the user in one short text."""
        return f"Count the lines of {self._check(arguments).string('file_path')}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; the tool changes nothing, so there is nothing to confirm."""
        context.workspace.open_path(self._check(arguments).string("file_path"))
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the number of lines."""
        shown = self._check(arguments).string("file_path")
        path = context.workspace.open_path(shown)
        data = await asyncio.to_thread(read_bytes, path, shown)
        text = f"{shown} has {len(text_of(data, path, shown).text.splitlines())} lines"
        return ToolSucceeded(ToolOutput(text=text), text)

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, PARAMETERS, arguments)
