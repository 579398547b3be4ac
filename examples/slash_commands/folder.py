"""A slash command in 15 lines: ``/folder`` says how many entries the workspace has, through a tool call.

To add it to Isthmus: put this file into src/isthmus/agent/commands/ and its COMMAND into registry.py.
"""

from isthmus.agent.commands.base import CommandNode
from isthmus.agent.commands.context import CommandContext, ToolInvocation
from isthmus.tools.list_directory import ListDirectory


async def folder(context: CommandContext) -> None:
    """Say how many entries the workspace has."""
    (call,) = await context.call(ToolInvocation(ListDirectory(), {"dir_path": "."}), is_permitted=True)
    text = call.output.text if call.output is not None and call.output.text else ""
    await context.say(f"{context.workspace} has {len(text.splitlines())} entries.")


COMMAND = CommandNode("folder", "Say how many entries the workspace has", folder)
