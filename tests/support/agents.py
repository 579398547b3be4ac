"""Small agents for tests of the engine: real implementations of its Agent port, without a model."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import ModelReply, ToolResultRecorded
from isthmus.models.port.base import Message, Text, ToolRequest
from isthmus.models.port.message import message_to_json

OPTIONS = (ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))


def reply(message_id: str, *parts: Text | ToolRequest) -> ModelReply:
    """Return a complete message of the model."""
    return ModelReply(message_id, "test", message_to_json(Message("assistant", parts)), input_tokens=3, output_tokens=2)


class EchoAgent:
    """An agent that answers with the words of the prompt, one delta a word."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        text = "".join(part.text for part in turn.session.messages[-1].parts if isinstance(part, Text))
        for word in text.split():
            await turn.emit(TextContent("m", word + " "))
        await turn.emit(reply("m", Text(text)))
        return StateChange(TaskState.COMPLETED)


@dataclass
class AskingAgent:
    """An agent that asks for the calls ``names``, runs each allowed call, then completes.

    It asks to edit when there is an ``edit``, else to run a command. ``ran`` are the calls that had their effect.
    """

    names: tuple[str, ...] = ("one",)
    edit: FileDiff | None = None
    options: tuple[ConfirmationOption, ...] = OPTIONS
    ran: list[str] = field(default_factory=list[str])

    async def advance(self, turn: AgentTurn) -> StateChange:
        session = turn.session
        if not session.calls:
            await turn.emit(StateChange(TaskState.WORKING))
            await turn.emit(reply("m", *(ToolRequest(name, "touch", {"name": name}) for name in self.names)))
        for item in session.calls.unsettled:
            if item.call is None:
                asked = ConfirmationRequest(self.options, file_edit_details=self.edit)
                if self.edit is None:
                    asked = ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails(f"touch {item.request.id}"))
                call = ToolCall(item.request.id, ToolCallStatus.PENDING, "touch", item.request.arguments)
                await turn.emit(ToolCallUpdate(replace(call, confirmation_request=asked)))
        for item in session.calls.unsettled:
            if item.call is None or item.confirmation is None:
                continue
            call = replace(item.call, confirmation_request=None)
            if item.confirmation.selected_option_id == "cancel":
                await turn.emit(ToolCallUpdate(replace(call, status=ToolCallStatus.CANCELLED)))
            else:
                await turn.emit(ToolCallUpdate(replace(call, status=ToolCallStatus.EXECUTING)))
                self.ran.append(call.tool_call_id)
                done = replace(call, status=ToolCallStatus.SUCCEEDED, output=ToolOutput(text="done"))
                await turn.emit(ToolCallUpdate(done))
            await turn.emit(ToolResultRecorded(call.tool_call_id, "done"))
        state = TaskState.INPUT_REQUIRED if session.calls.waiting else TaskState.COMPLETED
        return StateChange(state)


@dataclass
class WaitingAgent:
    """An agent that works until ``release`` is set; ``started`` and ``stopped`` (after its cleanup) are set."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Callable[[], AgentEvent] | None = None

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        if self.progress is not None:
            await turn.emit(self.progress())
        self.started.set()
        try:
            await self.release.wait()
        finally:
            self.stopped.set()
        return StateChange(TaskState.COMPLETED)


@dataclass
class GatedAgent:
    """An agent whose work on each prompt ends when that prompt is let go; it asks first for prompts with "ask".

    ``started`` are the prompts at work or done, in order.
    """

    started: list[str] = field(default_factory=list[str])
    gates: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def let_go(self, *prompts: str) -> None:
        """Let the work on these prompts end."""
        for prompt in prompts:
            self._gate(prompt).set()

    def _gate(self, prompt: str) -> asyncio.Event:
        return self.gates.setdefault(prompt, asyncio.Event())

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        message = next(item for item in reversed(turn.session.messages) if item.role == "user")
        prompt = "".join(part.text for part in message.parts if isinstance(part, Text))
        self.started.append(prompt)
        await self._gate(prompt).wait()
        await turn.emit(reply(f"of {prompt}", Text(f"done: {prompt}")))
        return StateChange(TaskState.INPUT_REQUIRED if "ask" in prompt else TaskState.COMPLETED)
