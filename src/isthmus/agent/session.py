"""A session: the conversation of one contextId, folded from the journal.

``apply`` takes the events of all tasks of the session, in order, and keeps what the next step needs: the messages as
the model saw them, the tool calls that are still open, and what the person has allowed. It is the only place where
that is worked out, for a running turn as for one that is resumed after a crash. No I/O, no clock.
"""

from dataclasses import dataclass, field, replace
from typing import assert_never

from isthmus.codec import well_formed
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    ConfirmationDetails,
    EditorContext,
    ModelReply,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolCallUpdate,
    ToolResultRecorded,
)
from isthmus.models.base import NOT_RUN, Message, Part, Text, ToolRequest, ToolResult, Usage, requests_of
from isthmus.models.message import message_from_json


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call of the last model message: what the model asked, and how far it is.

    ``call`` is its last announced state, None before the first. ``proposal`` is what a person was shown.
    ``confirmation`` is the person's answer. ``result`` is what the model will be told; then the call is settled.
    """

    request: ToolRequest
    call: ToolCall | None = None
    proposal: ConfirmationDetails | None = None
    confirmation: ToolCallConfirmation | None = None
    result: ToolResult | None = None

    @property
    def is_waiting(self) -> bool:
        """A person is asked and has not answered."""
        return (
            self.call is not None
            and self.call.status is ToolCallStatus.PENDING
            and self.call.confirmation_request is not None
            and self.confirmation is None
            and self.result is None
        )


@dataclass(slots=True)
class Session:
    """The state of a conversation after the events applied so far."""

    context_id: str
    messages: list[Message] = field(default_factory=list[Message])
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    answered: list[tuple[ToolCall, str]] = field(default_factory=list[tuple[ToolCall, str]])
    """Every call with the option that the person chose for it; what is granted follows from these."""
    task_id: str = ""
    state: TaskState = TaskState.SUBMITTED
    """The state last announced; ``submitted`` after a prompt that no work was announced for."""
    workspace: str = ""
    model_turns: int = 0
    """Model messages since the last prompt."""
    has_editor_context: bool = False
    """The last prompt has its editor context."""
    usage: Usage = field(default_factory=Usage)

    def apply(self, event: AgentEvent, task_id: str | None = None) -> AgentEvent:
        """Fold one event in, and return it, its texts made well-formed."""
        event = well_formed(event)
        if task_id is not None and task_id != self.task_id:
            self._enter_task(task_id)
        match event:
            case Prompt():
                self._take_prompt(event)
            case EditorContext(text):
                self.has_editor_context = True
                self._add_user_parts(Text(text))
            case StateChange(state):
                self.state = state
            case ModelReply():
                self._take_reply(event)
            case ToolCallUpdate(call):
                self._take_call(call)
            case ConfirmationAccepted(confirmation):
                self._take_confirmation(confirmation)
            case ToolResultRecorded(call_id, content, is_error):
                self._take_result(call_id, content, is_error)
            case TextContent() | Thought() | RetryNotice():
                pass
            case _:
                assert_never(event)
        return event

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a person, whole."""
        return tuple(item.call for item in self.calls.values() if item.is_waiting and item.call is not None)

    @property
    def given_up(self) -> tuple[ToolCall, ...]:
        """The calls that the model was told are not run, and that were announced as still to come."""
        settled = [item.call for item in self.calls.values() if item.result is not None and item.call is not None]
        return tuple(call for call in settled if not call.status.is_final)

    @property
    def unsettled(self) -> tuple[OpenCall, ...]:
        """The calls of the last model message whose result the model does not have yet, in order."""
        return tuple(item for item in self.calls.values() if item.result is None)

    def _enter_task(self, task_id: str) -> None:
        """Go on with another task of the session: what waits in the one before is answered there, not here."""
        self._give_up_calls()
        self.calls = {}
        self.task_id = task_id
        self.state = TaskState.SUBMITTED

    def _give_up_calls(self) -> None:
        for item in self.unsettled:
            self._take_result(item.request.id, NOT_RUN, is_error=True)

    def _take_prompt(self, prompt: Prompt) -> None:
        self._give_up_calls()
        self.model_turns = 0
        self.has_editor_context = False
        self.state = TaskState.SUBMITTED
        workspace = (prompt.settings or {}).get("workspace_path")
        if isinstance(workspace, str):
            self.workspace = workspace
        self._add_user_parts(Text(prompt.text))

    def _take_reply(self, reply: ModelReply) -> None:
        message = message_from_json(reply.message)
        self.messages.append(message)
        self.model_turns += 1
        self.calls = {request.id: OpenCall(request) for request in requests_of(message)}
        self.usage += Usage(
            reply.input_tokens, reply.output_tokens, cached=reply.cached_tokens, thoughts=reply.thought_tokens
        )

    def _take_call(self, call: ToolCall) -> None:
        item = self.calls.get(call.tool_call_id)
        if item is None:
            return
        asked = call.confirmation_request
        proposal = asked.details if asked is not None else item.proposal
        self.calls[call.tool_call_id] = replace(item, call=call, proposal=proposal)

    def _take_confirmation(self, confirmation: ToolCallConfirmation) -> None:
        item = self.calls.get(confirmation.tool_call_id)
        if item is None or item.call is None:
            return
        self.calls[confirmation.tool_call_id] = replace(item, confirmation=confirmation)
        self.answered.append((item.call, confirmation.selected_option_id))

    def _take_result(self, call_id: str, content: str, is_error: bool) -> None:
        item = self.calls.get(call_id)
        if item is None or item.result is not None:
            return
        result = ToolResult(call_id, item.request.name, content, is_error)
        self.calls[call_id] = replace(item, result=result)
        # The model gets all results of its message at once, in the order of its requests.
        results = [item.result for item in self.calls.values() if item.result is not None]
        if len(results) == len(self.calls):
            self._add_user_parts(*results)

    def _add_user_parts(self, *parts: Part) -> None:
        if self.messages and self.messages[-1].role == "user":
            self.messages[-1] = replace(self.messages[-1], parts=(*self.messages[-1].parts, *parts))
        else:
            self.messages.append(Message("user", parts))
