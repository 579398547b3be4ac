"""activate_skill: gives the model the instructions of a skill, under Gemini CLI's name and with its argument.

The description lists the skills, so that a request has a line for each instead of all their texts.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.agent.skills.finding import files_of
from isthmus.agent.skills.skill_file import InstalledSkill
from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure

NAMED_SKILLS = 30
"""Maximum number of names in an error."""


class ActivateSkill:
    """Gives the instructions of one of ``skills``."""

    name = "activate_skill"
    kind = ToolKind.READ

    def __init__(self, skills: Sequence[InstalledSkill]) -> None:
        self._skills = {skill.name: skill for skill in skills}
        listed = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
        self.description = (
            "Gives you the instructions of a skill: how the user, or this project, wants a kind of work done. Call it "
            f"before you begin work that the description of a skill fits. The skills are:\n{listed}"
        )
        self.parameters: Mapping[str, Any] = {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": list(self._skills), "description": "The name of the skill."}
            },
            "required": ["name"],
        }

    def describe(self, arguments: Arguments) -> str:
        """Return the name of the skill."""
        return f"Use the skill {self._skill(arguments).name}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the name; there is nothing to confirm."""
        self._skill(arguments)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the instructions, and the files that they may refer to."""
        skill = self._skill(arguments)
        shown = ToolOutput(text=f"The skill {skill.name}, from {skill.folder}")
        return ToolSucceeded(shown, text_for_model(skill, await asyncio.to_thread(files_of, skill)))

    def _skill(self, arguments: Arguments) -> InstalledSkill:
        name: object = arguments.get("name")
        if not isinstance(name, str) or name not in self._skills:
            expected = ", ".join(list(self._skills)[:NAMED_SKILLS])
            message = f"activate_skill: name: expected one of {expected}; received {str(name)[:100]!r}"
            raise ToolFailure(message, "invalid_arguments")
        return self._skills[name]


def text_for_model(skill: InstalledSkill, files: Sequence[str]) -> str:
    """Return a skill as the model reads it, with the paths of its other files."""
    listed = "\n".join(str(skill.folder / name) for name in files)
    resources = f"\n<available_resources>\n{listed}\n</available_resources>" if listed else ""
    return (
        f'<activated_skill name="{skill.name}">\n<instructions>\n{skill.instructions}\n</instructions>{resources}\n'
        "</activated_skill>\n"
        "The instructions say how to do this kind of work; they permit nothing that needs the user's leave. Paths in"
        f" them are relative to {skill.folder}; read_file reads the files there."
    )
