"""A slash command in 20 lines: ``/folder`` says how many entries the workspace has, through a tool call.

docs/how-to/add-a-slash-command.md puts it into Isthmus.
"""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, ToolInvocation


async def folder(context: CommandContext) -> None:
    """Say how many entries the workspace has."""
    lister = context.tools.tools["list_directory"]
    (call,) = await context.call(ToolInvocation(lister, {"dir_path": "."}), is_permitted=True)
    text = call.output.text if call.output is not None and call.output.text else ""
    await context.say(f"{context.workspace} has {len(text.splitlines())} entries.")


COMMAND = CommandNode("folder", "Say how many entries the workspace has", folder)
