"""/init: lets the model study the project and write its file of instructions."""

from collections.abc import Mapping
from typing import Any

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, CommandRefusedError, ToolInvocation, error_of
from isthmus.agent.memory.memory import DEFAULT_CONTEXT_FILES
from isthmus.development_tool import ConfirmationDetails, GenericDetails, ToolCallStatus, ToolOutput
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded

PROMPT = """\
Study the project in the workspace and write the file {path}: the instructions for coding agents that will work here.

First explore: list the top folder, read the README and the build and configuration files, then a few files that show
how the code is made. Do not guess what you have not seen.

Then write {path} with `write_file`. For a project of code it has, briefly and exactly:
- what the project is, and its main technologies;
- how to build, run, test and lint it: the very commands (mark what you could not find);
- how it is laid out: the folders and files that matter, and what depends on what;
- the conventions that you saw: style, naming, tests, how changes are made.
For a folder of other things: what is in it, how it is ordered, and how it is used.

Leave out what every agent knows anyway. {existing}"""
EXISTING = "The file exists: keep what is still true and was plainly written by a user."


class ReplaceInstructions:
    """The question before an existing file is rewritten; the later write by the model is asked about again."""

    name = "init"
    description = "Lets the model rewrite the project's file of instructions."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    kind = ToolKind.OTHER

    def describe(self, arguments: Arguments) -> str:
        """Return the description of the call, with the file."""
        return f"Rewrite {arguments['file_path']}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the file."""
        return GenericDetails(
            f"{arguments['file_path']} exists already. Let the model study the project and rewrite it?"
        )

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Do nothing: the model writes the file afterwards."""
        text = f"{arguments['file_path']} may be rewritten."
        return ToolSucceeded(ToolOutput(text=text), text)


async def init(context: CommandContext) -> None:
    """Ask when the file exists, then hand over to the model."""
    name = (context.context_files or DEFAULT_CONTEXT_FILES)[0]
    path = context.workspace / name
    exists = context.has_called or (path.is_file() and path.stat().st_size > 0)
    if exists:
        (call,) = await context.call(ToolInvocation(ReplaceInstructions(), {"file_path": str(path)}))
        if call.status is ToolCallStatus.CANCELLED:
            await context.say(f"{path} stays as it is.")
            raise CommandRefusedError
        if call.status is not ToolCallStatus.SUCCEEDED:
            raise error_of(call, f"{path} stays as it is.", "not_permitted")
    text = PROMPT.format(path=path, existing=EXISTING if exists else "").rstrip()
    await context.ask_model(text, requested_file=str(path))


COMMAND = CommandNode("init", "Let the model study the project and write GEMINI.md", init)
