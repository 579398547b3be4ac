"""Tools that depend on the user and the folder: `activate_skill`, `invoke_agent` and `save_memory`.

Only the local user has a home folder here: other users of a server get neither skills nor memory of the server's owner,
and only the built-in subagents.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import override

from isthmus.agent.memory.save_memory import SaveMemory
from isthmus.agent.skills.activate_skill import ActivateSkill
from isthmus.agent.skills.finding import FoundSkills
from isthmus.agent.skills.skill_file import InstalledSkill
from isthmus.agent.subagents.child_tasks import ChildTasks
from isthmus.agent.subagents.finding import FoundSubagents
from isthmus.agent.subagents.invoke_agent import InvokeAgent
from isthmus.record import record
from isthmus.tools.tool_set import ToolScope, ToolSet, ToolSource

if TYPE_CHECKING:
    from isthmus.tools.base import Tool

ASKED_MEMORY = "What is remembered counts in all later sessions"
"""Reason to ask the user about each fact that the model wants to remember."""


@record
class PersonalFiles:
    """The skills and subagents of a session."""

    skills: FoundSkills = FoundSkills()
    subagents: FoundSubagents = FoundSubagents()


PersonalSource: TypeAlias = Callable[[ToolScope], Awaitable[PersonalFiles]]
"""Returns the skills and subagents of a session."""


class PersonalTools(ToolSource):
    """The tools of ``source``, and those of the session's user.

    ``memory_file`` (an absolute path) is the local user's own file of instructions; without it nothing is remembered.
    ``files`` finds skills and subagents; the tasks of the latter are those of ``child_tasks``, without which they are
    not offered.
    """

    def __init__(
        self,
        source: ToolSource,
        files: PersonalSource,
        memory_file: Path | None,
        child_tasks: Callable[[], ChildTasks] | None = None,
    ) -> None:
        self._source = source
        self._files = files
        self._child_tasks = child_tasks
        self._memory_file = memory_file
        self._given: dict[tuple[str, str], tuple[ToolSet, ToolSet]] = {}

    @override
    async def tools(self, scope: ToolScope) -> ToolSet:
        return await self._add(scope, await self._source.tools(scope))

    @override
    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        whole, shown = self._given.get(_key(scope), (tools, tools))
        if shown is not tools:
            return await self._add(scope, await self._source.tools(scope))
        now = await self._source.renewed(scope, whole)
        return tools if now is whole else await self._add(scope, now)

    @override
    async def release(self, scope: ToolScope) -> None:
        self._given.pop(_key(scope), None)
        await self._source.release(scope)

    async def _add(self, scope: ToolScope, whole: ToolSet) -> ToolSet:
        added: dict[str, Tool] = {}
        asked: dict[str, str] = {}
        found = await self._files(scope)
        offered, definitions = found.skills.offered, found.subagents.definitions
        if offered:
            skills = ActivateSkill(offered)
            added[skills.name] = skills
        if definitions and self._child_tasks is not None and scope.task_id:
            invoke = InvokeAgent(definitions, self._child_tasks(), scope.task_id)
            added[invoke.name] = invoke
        if self._memory_file is not None and not scope.user:
            memory = SaveMemory(self._memory_file)
            added[memory.name], asked[memory.name] = memory, ASKED_MEMORY
        # A name that a server's tool has stays that tool's.
        added = {name: tool for name, tool in added.items() if name not in whole.tools}
        shown = whole
        if added:
            shown = replace(
                whole,
                tools={**whole.tools, **added},
                always_asked={**whole.always_asked, **{name: why for name, why in asked.items() if name in added}},
                readable_folders=_outside(scope.workspace, offered) if offered else (),
            )
        self._given[_key(scope)] = (whole, shown)
        return shown


def _outside(workspace: Path, skills: Sequence[InstalledSkill]) -> tuple[Path, ...]:
    """Return the folders of skills outside the workspace; inside it, ignore files decide what may be read."""
    root = workspace.resolve()
    return tuple(skill.folder for skill in skills if not skill.folder.is_relative_to(root))


def _key(scope: ToolScope) -> tuple[str, str]:
    return scope.context_id, scope.task_id
