"""/tools: lists the tools that the model may call in this session."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext


async def names(context: CommandContext) -> None:
    """List the names of the tools."""
    await context.say("\n".join(("Tools:", *(f"- {name}" for name in context.tools.tools))))


async def descriptions(context: CommandContext) -> None:
    """List the tools with the descriptions that the model reads."""
    lines = (f"- {tool.name}: {tool.description.strip()}" for tool in context.tools.tools.values())
    await context.say("\n".join(("Tools:", *lines)))


COMMAND = CommandNode(
    "tools",
    "List the tools that the model has in this session",
    names,
    sub_commands=(
        CommandNode("list", "List their names", names),
        CommandNode("desc", "List them with their descriptions", descriptions),
    ),
)
