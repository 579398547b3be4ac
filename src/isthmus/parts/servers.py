"""The instructions of MCP servers, as a part of the agent."""

from typing_extensions import override

from isthmus.agent.part import PartBase
from isthmus.agent.server_instructions import server_instructions
from isthmus.tools.port.server_contents import ServerContents
from isthmus.tools.port.tool_set import ToolScope


class ServersPart(PartBase):
    """Part that tells the model how the session's MCP servers want to be used. Their tools are a ToolSource."""

    name = "servers"

    def __init__(self, contents: ServerContents) -> None:
        self._contents = contents

    @override
    async def instructions(self, scope: ToolScope) -> str:
        return server_instructions(await self._contents.instructions(scope))
