"""Tools that parts of the agent bring, beside those of another source."""

from dataclasses import replace

from typing_extensions import override

from isthmus.agent.part import AgentParts
from isthmus.tools.port.tool_set import ToolScope, ToolSet, ToolSource


class ToolsOfParts(ToolSource):
    """The tools of ``source``, and those of ``parts``, which are asked once for each turn.

    A name that a tool of the source has stays that tool's, and then that of the first part which uses it.
    """

    def __init__(self, source: ToolSource, parts: AgentParts) -> None:
        self._source = source
        self._parts = parts
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
        shown = whole
        for brought in await self._parts.tools(scope):
            added = {tool.name: tool for tool in brought.tools if tool.name not in shown.tools}
            if added:
                asked = {name: why for name, why in brought.always_asked.items() if name in added}
                shown = replace(
                    shown,
                    tools={**shown.tools, **added},
                    always_asked={**shown.always_asked, **asked},
                    readable_folders=(*shown.readable_folders, *brought.readable_folders),
                )
        self._given[_key(scope)] = (whole, shown)
        return shown


def _key(scope: ToolScope) -> tuple[str, str]:
    return scope.context_id, scope.task_id
