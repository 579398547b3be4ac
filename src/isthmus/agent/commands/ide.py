"""/ide: the editor that this session uses, and whether it does."""

from isthmus.agent.commands.base import CommandNode
from isthmus.agent.commands.context import CommandContext, CommandError
from isthmus.agent.editor_ports import EditorControl


async def status(context: CommandContext) -> None:
    """Show which editor it is, what it offers, and what to do when there is none."""
    await context.say(await _editors(context).status(context.scope))


async def enable(context: CommandContext) -> None:
    """Use an editor again."""
    await context.say(await _editors(context).enable(context.scope))


async def disable(context: CommandContext) -> None:
    """Go on without an editor."""
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
        CommandNode("status", "Show which editor it is, and what it can be asked", status),
        CommandNode("enable", "Use an editor again, and look for it now", enable),
        CommandNode("disable", "Use no editor: nothing of what it shows is sent, edits are reviewed here", disable),
    ),
)
