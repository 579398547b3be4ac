"""Small agents for tests of the engine: real implementations of its Agent port, without a model."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace

from isthmus.agent.session import Session
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import (
    AgentEvent,
    ModelReply,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
    ToolResultRecorded,
)
from isthmus.models.base import Message, Text, ToolRequest
from isthmus.models.message import message_to_json

OPTIONS = (ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))


def reply(message_id: str, *parts: Text | ToolRequest) -> ModelReply:
    """A complete message of the model."""
    return ModelReply(message_id, "test", message_to_json(Message("assistant", parts)), input_tokens=3, output_tokens=2)


class EchoAgent:
    """Answers with the words of the prompt, one delta a word."""

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield session.apply(StateChange(TaskState.WORKING))
        text = "".join(part.text for part in session.messages[-1].parts if isinstance(part, Text))
        for word in text.split():
            yield session.apply(TextContent("m", word + " "))
        yield session.apply(reply("m", Text(text)))
        yield session.apply(StateChange(TaskState.COMPLETED))


@dataclass
class AskingAgent:
    """Asks for the calls ``names``, runs each that is allowed, then completes.

    It asks to edit when there is an ``edit``, else to run a command. ``ran`` are the calls that had their effect.
    """

    names: tuple[str, ...] = ("one",)
    edit: FileDiff | None = None
    options: tuple[ConfirmationOption, ...] = OPTIONS
    ran: list[str] = field(default_factory=list[str])

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        if not session.calls:
            yield session.apply(StateChange(TaskState.WORKING))
            yield session.apply(reply("m", *(ToolRequest(name, "touch", {"name": name}) for name in self.names)))
        for item in session.unsettled:
            if item.call is None:
                asked = ConfirmationRequest(self.options, file_edit_details=self.edit)
                if self.edit is None:
                    asked = ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails(f"touch {item.request.id}"))
                call = ToolCall(item.request.id, ToolCallStatus.PENDING, "touch", item.request.arguments)
                yield session.apply(ToolCallUpdate(replace(call, confirmation_request=asked)))
        for item in session.unsettled:
            if item.call is None or item.confirmation is None:
                continue
            call = replace(item.call, confirmation_request=None)
            if item.confirmation.selected_option_id == "cancel":
                yield session.apply(ToolCallUpdate(replace(call, status=ToolCallStatus.CANCELLED)))
            else:
                yield session.apply(ToolCallUpdate(replace(call, status=ToolCallStatus.EXECUTING)))
                self.ran.append(call.tool_call_id)
                done = replace(call, status=ToolCallStatus.SUCCEEDED, output=ToolOutput(text="done"))
                yield session.apply(ToolCallUpdate(done))
            yield session.apply(ToolResultRecorded(call.tool_call_id, "done"))
        state = TaskState.INPUT_REQUIRED if session.waiting else TaskState.COMPLETED
        yield session.apply(StateChange(state))


@dataclass
class WaitingAgent:
    """Works until ``release`` is set. ``started`` tells that it has begun, ``stopped`` that it was cleaned up."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Callable[[], AgentEvent] | None = None

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield session.apply(StateChange(TaskState.WORKING))
        if self.progress is not None:
            yield session.apply(self.progress())
        self.started.set()
        try:
            await self.release.wait()
        finally:
            self.stopped.set()
        yield session.apply(StateChange(TaskState.COMPLETED))
