"""The commands of sessions in the background, as a part of the agent."""

from typing_extensions import override

from isthmus.agent.part import PartBase, PartTurn
from isthmus.tools.shell.background_commands import BackgroundCommands


class BackgroundPart(PartBase):
    """Part that tells the model which of its commands in the background have ended, and ends them with the agent."""

    name = "background"

    def __init__(self, commands: BackgroundCommands) -> None:
        self.commands = commands

    @override
    async def before_model(self, turn: PartTurn) -> str | None:
        return self.commands.take_news(turn.session)

    @override
    async def aclose(self) -> None:
        await self.commands.aclose()
