"""Decoder for streams without the extension: plain A2A, and the dialect ``coderAgent`` of gemini-cli-a2a-server.

A server's card, or the first event with the dialect's key, shows that it speaks the dialect. Its ``input-required`` at
the end of a turn means ``completed``, unless a call waits. Sans-I/O.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.coder_agent.vocabulary import (
    KEY,
    OFFERED,
    STATUSES,
    AnswerOutcome,
    CallStatus,
    DetailsType,
    EventKind,
    call_of_artifact,
)
from isthmus.a2a.protocol.items import (
    ArtifactItem,
    Item,
    JsonMap,
    MessageItem,
    StatusItem,
    TaskItem,
    object_of,
    optional_object,
    optional_text,
    text_field,
)
from isthmus.a2a.protocol.snapshots import FAILED_STATES, plain_text
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import Delivery
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import from_json
from isthmus.errors import DecodeError
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from isthmus.task_view import text_of_parts

OPTION_NAMES = {
    AnswerOutcome.PROCEED_ONCE: "Allow once",
    AnswerOutcome.PROCEED_ALWAYS: "Allow always in this session",
    AnswerOutcome.PROCEED_ALWAYS_TOOL: "Allow this tool always in this session",
    AnswerOutcome.PROCEED_ALWAYS_SERVER: "Allow this server's tools always in this session",
    AnswerOutcome.CANCEL: "Reject",
}


class CoderAgentDecoder(StreamDecoder):
    """Decodes the items of one task's streams from a server without the extension."""

    def __init__(self, state: TaskState | None = None, *, is_coder_agent: bool = False) -> None:
        super().__init__(state)
        self.is_coder_agent = is_coder_agent
        """Whether the server speaks the dialect, by its card or its events."""
        self._text_id = ""

    @override
    def _text(self, message: MessageItem) -> str:
        return plain_text(message) if self.is_coder_agent else super()._text(message)

    @override
    def _state_of(self, item: StatusItem | TaskItem) -> TaskState:
        state = item.status.state
        if not self.is_coder_agent or state is not TaskState.INPUT_REQUIRED:
            return state
        return TaskState.INPUT_REQUIRED if self._waits else TaskState.COMPLETED

    @property
    def _waits(self) -> bool:
        return any(call.confirmation_request is not None for call in self._calls.values())

    @override
    def _status(self, item: StatusItem, seq: int | None) -> Iterator[AgentEvent]:
        about = optional_object((item.metadata or {}).get(KEY))
        if about is None:
            yield from self._plain_status(item, seq)
            return
        self.is_coder_agent = True
        metadata, message = item.metadata or {}, item.status.message
        match about.get("kind"):
            case EventKind.TOOL_CALL_CONFIRMATION | EventKind.TOOL_CALL_UPDATE:
                for data in message.data if message is not None else ():
                    yield from self._scheduled(data)
                if message is not None and not message.data:  # the user's answer could not be carried out
                    yield from self._texts(message, seq)
            case EventKind.THOUGHT:
                for data in message.data if message is not None else ():
                    yield Thought(from_json(AgentThought, data))
            case EventKind.STATE_CHANGE:
                yield from self._changed(item, optional_text(metadata.get("error")), seq)
            case _:
                yield from self._texts(message, seq)
        if item.is_final:
            yield from self._rested(item)

    def _texts(
        self, message: MessageItem | None, seq: int | None, *, are_increments: bool = False
    ) -> Iterator[TextContent]:
        """Yield text under one message id: the dialect gives a new id to every piece of a text."""
        for text in super()._texts(message, seq, are_increments=are_increments):
            if not self.is_coder_agent:
                yield text
                continue
            self._text_id = self._text_id or text.message_id
            yield TextContent(self._text_id, text.text)

    @override
    def decode(self, item: Item, seq: int | None) -> list[Delivery]:
        deliveries = super().decode(item, seq)
        if any(not isinstance(delivery.event, TextContent) for delivery in deliveries):
            self._text_id = ""
        return deliveries

    def _changed(self, item: StatusItem, error: str | None, seq: int | None) -> Iterator[AgentEvent]:
        state, message = self._state_of(item), item.status.message
        said = plain_text(message) if message is not None else ""
        if state in FAILED_STATES:
            self._state = state
            yield StateChange(state, error or said or None)
            return
        if error is not None:
            # The request to the model failed; the server then ends the turn as if it were completed.
            self._state = TaskState.FAILED
            yield StateChange(TaskState.FAILED, error)
            return
        yield from self._texts(message, seq)
        is_rest = state.ends_stream and not item.is_final
        if not is_rest and state is not self._state and not self._is_failed:
            self._state = state
            yield StateChange(state)

    @property
    def _is_failed(self) -> bool:
        return self._state is TaskState.FAILED

    def _rested(self, item: StatusItem) -> Iterator[AgentEvent]:
        state = self._state_of(item)
        if state.ends_stream and state is not self._state and not self._is_failed:
            self._state = state
            yield StateChange(state)

    @override
    def _artifact(self, item: ArtifactItem) -> Iterator[AgentEvent]:
        call = self._calls.get(call_of_artifact(item.artifact_id) or "")
        if call is None:
            yield from super()._artifact(item)
        else:
            # Each piece is the whole output so far, whatever "append" is. It is the screen of a terminal, whose lines
            # are padded with blanks.
            shown = "\n".join(line.rstrip() for line in text_of_parts(item.parts).split("\n")).rstrip("\n")
            executing = replace(call, status=ToolCallStatus.EXECUTING, confirmation_request=None)
            yield ToolCallUpdate(replace(executing, live_content=shown))

    def _scheduled(self, data: JsonMap) -> Iterator[AgentEvent]:
        call = decode_call(data)
        if call.status is ToolCallStatus.EXECUTING and self._state is TaskState.INPUT_REQUIRED:
            self._state = TaskState.WORKING
            yield StateChange(TaskState.WORKING)
        # The scheduler sends every call of a batch repeatedly.
        if self._calls.get(call.tool_call_id) != call and call.tool_call_id not in self._ended:
            yield self._call(call)


def decode_call(data: JsonMap) -> ToolCall:
    """Return a call of Gemini CLI's scheduler as a ToolCall.

    Raises:
        DecodeError: it does not have the shape of a call.
    """
    request = object_of(data.get("request"), "ToolCall.request")
    try:
        status = CallStatus(str(data.get("status")))
    except ValueError as error:
        raise DecodeError("ToolCall.status", "one of " + ", ".join(CallStatus), data.get("status")) from error
    tool = optional_object(data.get("tool")) or {}
    name = text_field(request, "name", "ToolCall.request")
    response = optional_object(data.get("response")) or {}
    ours = STATUSES[status]
    details = optional_object(data.get("confirmationDetails"))
    return ToolCall(
        text_field(request, "callId", "ToolCall.request"),
        ours,
        name,
        optional_object(request.get("args")) or {},
        optional_text((details or {}).get("title")) or optional_text(tool.get("displayName")),
        live_content=optional_text(data.get("liveOutput")) if ours is ToolCallStatus.EXECUTING else None,
        output=_output(response) if ours is ToolCallStatus.SUCCEEDED else None,
        error=_error(response) if ours is ToolCallStatus.FAILED else None,
        confirmation_request=_question(details or {}) if status is CallStatus.AWAITING_APPROVAL else None,
    )


def _question(details: JsonMap) -> ConfirmationRequest:
    kind = details.get("type")
    offered = OFFERED[DetailsType(kind)] if kind in tuple(DetailsType) else OFFERED[DetailsType.INFO]
    options = tuple(ConfirmationOption(outcome.value, OPTION_NAMES[outcome]) for outcome in offered)
    match kind:
        case DetailsType.EDIT:
            return ConfirmationRequest(options, file_edit_details=_diff(details))
        case DetailsType.EXEC:
            return ConfirmationRequest(options, execute_details=ExecuteDetails(str(details.get("command", ""))))
        case DetailsType.MCP:
            names = str(details.get("serverName", "")), str(details.get("toolName", ""))
            return ConfirmationRequest(options, mcp_details=McpDetails(*names))
        case _:
            lines = [str(details[name]) for name in ("title", "prompt") if optional_text(details.get(name))]
            urls = details.get("urls")
            lines += [str(url) for url in cast("list[Any]", urls)] if isinstance(urls, list) else []
            text = "\n".join(dict.fromkeys(lines)) or "The agent asks for permission."
            return ConfirmationRequest(options, generic_details=GenericDetails(text))


def _diff(source: JsonMap) -> FileDiff:
    path = str(source.get("filePath") or source.get("fileName") or "")
    return FileDiff(
        str(source.get("fileName") or path.rpartition("/")[2]),
        path,
        str(source.get("newContent") or ""),
        str(source["originalContent"]) if source.get("originalContent") is not None else None,
        optional_text(source.get("fileDiff")),
    )


def _output(response: JsonMap) -> ToolOutput:
    display = response.get("resultDisplay")
    if isinstance(display, str):
        return ToolOutput(text=display)
    shown = optional_object(display)
    if shown is None:
        return ToolOutput(text=_output_for_model(response))
    return ToolOutput(diff=_diff(shown)) if "fileDiff" in shown else ToolOutput(structured_data=shown)


def _error(response: JsonMap) -> ErrorDetails:
    error = response.get("error")
    inner = optional_text((optional_object(error) or {}).get("message")) or optional_text(error)
    display = optional_text(response.get("resultDisplay"))
    message = display or inner or _output_for_model(response) or "The tool failed."
    return ErrorDetails(message, optional_text(response.get("errorType")))


def _output_for_model(response: JsonMap) -> str:
    """Return the output in the functionResponse, for a response without output for the user."""
    parts = response.get("responseParts")
    for part in cast("list[Any]", parts) if isinstance(parts, list) else ():
        called = optional_object((optional_object(part) or {}).get("functionResponse")) or {}
        content = optional_object(called.get("response")) or {}
        for name in ("output", "error"):
            if text := optional_text(content.get(name)):
                return text
    return ""
