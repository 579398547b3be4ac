"""/skills: lists the skills of a session, and those that cannot be used."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext

ADVICE = (
    "There are no skills. A skill is a folder with a SKILL.md in ~/.gemini/skills, ~/.claude/skills or"
    " ~/.agents/skills."
)


async def skills(context: CommandContext) -> None:
    """List the skills with their descriptions and folders."""
    source = context.resources.personal
    if source is None:
        await context.say(ADVICE)
        return
    found = (await source(context.scope)).skills
    lines: list[str] = []
    for skill in found.skills:
        note = "" if skill.is_offered else " (used only when you name it)"
        lines += [f"- {skill.name}{note}: {skill.description}", f"  {skill.folder}"]
    lines += [f"Note: {problem}" for problem in found.problems]
    if not found.skills:
        lines.insert(0, ADVICE)
    await context.say("\n".join(lines))


COMMAND = CommandNode("skills", "List the skills that the agent can use in this session", skills)
