"""Skills and subagents, as a part of the agent: `activate_skill` and `invoke_agent`.

Only the local user has a home folder here: other users of a server get none of the skills of the server's owner, and
only the built-in subagents.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import override

from isthmus.agent.part import PartBase, PartTools
from isthmus.agent.skills.activate_skill import ActivateSkill
from isthmus.agent.skills.finding import FoundSkills
from isthmus.agent.skills.skill_file import InstalledSkill
from isthmus.agent.subagents.child_tasks import ChildTasks
from isthmus.agent.subagents.finding import FoundSubagents
from isthmus.agent.subagents.invoke_agent import InvokeAgent
from isthmus.record import record
from isthmus.tools.port.tool_set import ToolScope

if TYPE_CHECKING:
    from isthmus.tools.port.base import Tool


@record
class PersonalFiles:
    """The skills and subagents of a session."""

    skills: FoundSkills = FoundSkills()
    subagents: FoundSubagents = FoundSubagents()


PersonalSource: TypeAlias = Callable[[ToolScope], Awaitable[PersonalFiles]]
"""Returns the skills and subagents of a session."""


class PersonalPart(PartBase):
    """Part that brings the skills and subagents which ``files`` finds.

    The tasks of subagents are those of ``child_tasks``, without which none are offered.
    """

    name = "personal"

    def __init__(self, files: PersonalSource, child_tasks: Callable[[], ChildTasks] | None = None) -> None:
        self._files = files
        self._child_tasks = child_tasks

    @override
    async def tools(self, scope: ToolScope) -> PartTools:
        tools: list[Tool] = []
        found = await self._files(scope)
        offered, definitions = found.skills.offered, found.subagents.definitions
        if offered:
            tools.append(ActivateSkill(offered))
        if definitions and self._child_tasks is not None and scope.task_id:
            tools.append(InvokeAgent(definitions, self._child_tasks(), scope.task_id))
        return PartTools(tuple(tools), readable_folders=_outside(scope.workspace, offered) if offered else ())


def _outside(workspace: Path, skills: Sequence[InstalledSkill]) -> tuple[Path, ...]:
    """Return the folders of skills outside the workspace; inside it, ignore files decide what may be read."""
    root = workspace.resolve()
    return tuple(skill.folder for skill in skills if not skill.folder.is_relative_to(root))
