"""Clients of an agent of a framework, in the process of its engine."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from isthmus.agent.hosted import AgentPort, HostedAgent
from isthmus.client import PromptMessage
from isthmus.development_tool import ModifiedFileDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.engine import Engine
from isthmus.events import AgentEvent, AgentMessage, ArtifactUpdate, MessagePart, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import AgentRecord
from support.engines import engine_on
from support.turns import SECONDS, events_of

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture, in base64."""
EventT = TypeVar("EventT")


@dataclass(slots=True)
class Conversation:
    """A user's conversation with an agent; the last task is the present one."""

    engine: Engine
    task_id: str = ""
    context_id: str = ""

    async def says(self, text: str, *, files: Sequence[MessagePart] = (), same_task: bool = False) -> list[AgentEvent]:
        """Send a message, of a new task or the present one; return the events to the next end or question."""
        parts = (MessagePart(text=text), *files) if files else ()
        message = PromptMessage(text, parts=parts)
        place = (self.task_id, None) if same_task else (None, self.context_id or None)
        turn = await self.engine.prompt(replace(message, task_id=place[0], context_id=place[1]))
        self.task_id = turn.task_id
        seen = await events_of(turn)
        self.context_id = (await self.engine.get(turn.task_id)).context_id
        return seen

    async def questions(self) -> Sequence[ToolCall]:
        """Return the calls that wait for the user."""
        return (await self.engine.get(self.task_id)).pending

    async def answers(self, option: str = "proceed_once", content: str | None = None) -> list[AgentEvent]:
        """Answer all questions alike; return the events to the next end or question."""
        edited = ModifiedFileDetails(content) if content is not None else None
        given = [ToolCallConfirmation(call.tool_call_id, option, edited) for call in await self.questions()]
        return await events_of(await self.engine.answer(self.task_id, given, answered_by="test"))


@asynccontextmanager
async def conversation_with(
    agent: AgentPort, folder: Path, before: Conversation | None = None
) -> AsyncGenerator[Conversation]:
    """Run the agent in an engine of its own; go on with a conversation of an earlier engine in the same folder."""
    async with engine_on(folder, HostedAgent(agent)) as engine:
        if before is not None:
            before.engine = engine
        yield before or Conversation(engine)


async def begins(user: Conversation, started: asyncio.Event) -> None:
    """Send a message, and wait until a tool has started."""
    turn = await user.engine.prompt(PromptMessage("go"))
    user.task_id = turn.task_id
    async with asyncio.timeout(SECONDS):
        await started.wait()


async def ends(user: Conversation) -> TaskState:
    """Follow the task to its end, and return its state."""
    async with asyncio.timeout(SECONDS):
        async for _ in (await user.engine.follow(user.task_id, 0)).deliveries:
            pass
    return (await user.engine.get(user.task_id)).state


def of_kind(events: Sequence[AgentEvent], kind: type[EventT]) -> list[EventT]:
    """Return the events of a class."""
    return [event for event in events if isinstance(event, kind)]


def text_in(events: Sequence[AgentEvent]) -> str:
    """Return the streamed text."""
    return "".join(event.text for event in of_kind(events, TextContent))


def messages_in(events: Sequence[AgentEvent]) -> list[str]:
    """Return the whole messages that were not streamed."""
    return [event.text for event in of_kind(events, AgentMessage) if not event.was_streamed]


def calls_in(events: Sequence[AgentEvent]) -> list[tuple[str, ToolCallStatus]]:
    """Return the names and states of the calls, in order."""
    return [(event.tool_call.tool_name, event.tool_call.status) for event in of_kind(events, ToolCallUpdate)]


def last_call(events: Sequence[AgentEvent]) -> ToolCall:
    """Return the last state of the last call."""
    return of_kind(events, ToolCallUpdate)[-1].tool_call


def artifacts_in(events: Sequence[AgentEvent]) -> list[MessagePart]:
    """Return the parts of all artifacts."""
    return [part for event in of_kind(events, ArtifactUpdate) for part in event.parts]


def record_bytes(events: Sequence[AgentEvent]) -> int:
    """Return about how many bytes the records among the events have."""
    return sum(len(str(event.data)) for event in of_kind(events, AgentRecord))
