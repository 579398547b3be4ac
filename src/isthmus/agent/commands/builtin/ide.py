"""/ide: shows the editor of this session, and switches its use on and off."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.agent.editor_ports import EditorControl


async def status(context: CommandContext) -> None:
    """Show the editor and its features, or how to connect one."""
    await context.say(await _editors(context).status(context.scope))


async def enable(context: CommandContext) -> None:
    """Use an editor again."""
    await context.say(await _editors(context).enable(context.scope))


async def disable(context: CommandContext) -> None:
    """Stop using an editor."""
    await context.say(await _editors(context).disable(context.scope))


def _editors(context: CommandContext) -> EditorControl:
    if context.resources.editors is None:
        raise CommandError("This agent uses no editors.", "no_editors")
    return context.resources.editors


COMMAND = CommandNode(
    "ide",
    "Show the editor that this session uses",
    status,
    sub_commands=(
        CommandNode("status", "Show the editor and its features", status),
        CommandNode("enable", "Use an editor again, and look for it now", enable),
        CommandNode("disable", "Use no editor: none of its content is sent, and edits are reviewed here", disable),
    ),
)
