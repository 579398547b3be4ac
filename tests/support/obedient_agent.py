"""A hosted agent that obeys the first word of a message."""

import asyncio
from collections.abc import AsyncGenerator

from isthmus.agent.session.session import Session
from isthmus.events import AgentEvent, AgentMessage, ArtifactPart, ArtifactUpdate, StateChange, TaskState, TextContent


class Obedient:
    """The agent. Its command ``wait`` ends when ``gate`` is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        match session.prompt.split()[0]:
            case "ask":
                yield TextContent("", "Which one?")
                yield StateChange(TaskState.INPUT_REQUIRED)
            case "login":
                yield StateChange(TaskState.AUTH_REQUIRED, "open https://login.example/")
            case "wait":
                yield TextContent("", "begun")
                await self.gate.wait()
                yield TextContent("", "ended")
            case "make":
                parts = (ArtifactPart(text="a"), ArtifactPart(data={"n": 1}), ArtifactPart(url="https://x.example/"))
                yield ArtifactUpdate("r", parts, "Report")
            case "say":
                yield AgentMessage("", "just this", is_answer=True)
            case _:
                yield TextContent("", f"You said: {session.prompt}")
