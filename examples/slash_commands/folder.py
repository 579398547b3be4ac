"""A slash command in 20 lines: ``/folder`` says how many entries the workspace has, through a tool call.

To add it to Isthmus: put this file into src/isthmus/agent/commands/ and its COMMAND into registry.py.
"""

from isthmus.agent.commands.base import CommandNode
from isthmus.agent.commands.context import CommandContext, CommandError, ToolInvocation

TOOL = "list_directory"


async def folder(context: CommandContext) -> None:
    """Say how many entries the workspace has."""
    tool = context.tools.tools.get(TOOL)
    if tool is None:
        raise CommandError(context.tools.refusals.get(TOOL, f"{TOOL} is not available here"), "not_permitted")
    (call,) = await context.call(ToolInvocation(tool, {"dir_path": "."}), is_permitted=True)
    text = call.output.text if call.output is not None and call.output.text else ""
    await context.say(f"{context.workspace} has {len(text.splitlines())} entries.")


COMMAND = CommandNode("folder", "Say how many entries the workspace has", folder)
