"""/agents: lists the subagents of a session, and the files that cannot be used."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext

ADVICE = "There are no subagents here: the settings switch them off."


async def agents(context: CommandContext) -> None:
    """List the subagents with their descriptions and files."""
    source = context.resources.personal
    found = None if source is None else (await source(context.scope)).subagents
    if found is None or not (found.definitions or found.problems):
        await context.say(ADVICE)
        return
    lines: list[str] = []
    for definition in found.definitions:
        lines += [f"- {definition.name}: {definition.description}", f"  {definition.source}"]
    lines += [f"Note: {problem}" for problem in found.problems]
    await context.say("\n".join(lines))


COMMAND = CommandNode("agents", "List the subagents to which the agent can give parts of its work", agents)
