"""/ide: the editor that this session uses, and whether it does."""

from collections.abc import Awaitable, Callable

from isthmus.agent.commands.base import CommandContext, CommandNode, Fail, Say, Steps
from isthmus.agent.editor_ports import EditorControl
from isthmus.tools.base import ToolScope

_NONE = Fail("This agent uses no editors.", "no_editors")


async def status(context: CommandContext) -> Steps:
    """Which editor it is, what it offers, and what to do when there is none."""
    async for step in _said(context, lambda editors: editors.status):
        yield step


async def enable(context: CommandContext) -> Steps:
    """Use it again."""
    async for step in _said(context, lambda editors: editors.enable):
        yield step


async def disable(context: CommandContext) -> Steps:
    """Go on without."""
    async for step in _said(context, lambda editors: editors.disable):
        yield step


async def _said(
    context: CommandContext, asked: Callable[[EditorControl], Callable[[ToolScope], Awaitable[str]]]
) -> Steps:
    editors = context.resources.editors
    if editors is None:
        yield _NONE
        return
    yield Say(await asked(editors)(context.scope))


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
