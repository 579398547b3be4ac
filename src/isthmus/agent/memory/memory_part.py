"""The local user's memory, as a part of the agent: `save_memory`."""

from pathlib import Path

from typing_extensions import override

from isthmus.agent.memory.save_memory import SaveMemory
from isthmus.agent.part import PartBase, PartTools
from isthmus.tools.port.tool_set import ToolScope

ASKED_MEMORY = "What is remembered counts in all later sessions"
"""Reason to ask the user about each fact that the model wants to remember."""


class MemoryPart(PartBase):
    """Part that lets the model remember facts in ``file``, the local user's own file of instructions (absolute)."""

    name = "memory"

    def __init__(self, file: Path) -> None:
        self._file = file

    @override
    async def tools(self, scope: ToolScope) -> PartTools:
        """Return the tool for the local user; other users of a server do not write into the owner's file."""
        if scope.user:
            return PartTools()
        tool = SaveMemory(self._file)
        return PartTools((tool,), always_asked={tool.name: ASKED_MEMORY})
