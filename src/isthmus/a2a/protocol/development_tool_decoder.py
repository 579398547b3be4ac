"""Decoder for the streams of servers that have the development-tool extension (section 3.2). Sans-I/O."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from typing_extensions import override

from isthmus.a2a.protocol.extension import envelope
from isthmus.a2a.protocol.items import JsonMap, MessageItem, StatusItem, optional_object, optional_text
from isthmus.a2a.protocol.snapshots import pending_calls, plain_text
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.development_tool import (
    AgentThought,
    DevelopmentToolEvent,
    DevelopmentToolEventKind,
    ToolCall,
    ToolCallConfirmation,
)
from isthmus.encoding.codec import from_json
from isthmus.events import AgentEvent, ConfirmationAccepted, RetryNotice, StateChange, TaskState, Thought


class DevelopmentToolDecoder(StreamDecoder):
    """Decodes the items of one task's streams; ``uri`` is the extension as the server spells it."""

    def __init__(self, uri: str, state: TaskState | None = None) -> None:
        super().__init__(state)
        self._uri = uri

    @override
    def _text(self, message: MessageItem) -> str:
        return plain_text(message)

    @override
    def _questions(self, message: MessageItem | None) -> Iterable[ToolCall]:
        return tuple(pending_calls(message))

    @override
    def _status(self, item: StatusItem, seq: int | None) -> Iterator[AgentEvent]:
        extended = envelope(item.metadata, self._uri)
        if extended is None:
            yield from self._plain_status(item, seq)
            return
        about = from_json(DevelopmentToolEvent, extended)
        message = item.status.message
        objects = message.data if message is not None else ()
        kinds = DevelopmentToolEventKind
        match about.kind:
            case kinds.TEXT_CONTENT:
                replaces = optional_text(extended.get("replaces_message_id"))
                for increment in self._texts(message, seq, are_increments=True):
                    yield replace(increment, replaces=replaces)
            case kinds.THOUGHT:
                for data in objects:
                    yield Thought(from_json(AgentThought, data))
            case kinds.TOOL_CALL_UPDATE:
                for data in objects:
                    yield self._call(from_json(ToolCall, data))
            case kinds.TOOL_CALL_CONFIRMATION:
                for data in objects:
                    yield self._confirmation(data, extended)
            case kinds.STATE_CHANGE:
                yield from self._state_change(item, about, extended)
            case kinds.DEVELOPMENT_TOOL_EVENT_KIND_UNSPECIFIED:
                yield from self._plain_status(item, seq)
        self._state = item.status.state

    def _state_change(self, item: StatusItem, about: DevelopmentToolEvent, extended: JsonMap) -> Iterator[AgentEvent]:
        retry = optional_object(extended.get("retry"))
        if retry is not None:
            yield from_json(RetryNotice, retry, "retry")
            return
        yield from self._unseen(self._questions(item.status.message))
        reason = optional_text(extended.get("reason")) or item.status.foreign
        yield StateChange(item.status.state, about.error, reason)

    def _confirmation(self, data: JsonMap, extended: JsonMap) -> AgentEvent:
        if "status" in data:  # some servers send the question itself with this kind
            return self._call(from_json(ToolCall, data))
        answered_by = optional_text(extended.get("answered_by")) or "somebody"
        return ConfirmationAccepted(from_json(ToolCallConfirmation, _without_oneof(data)), answered_by)


def _without_oneof(data: JsonMap) -> dict[str, Any]:
    """Return the object with the members of its oneof on top, also where they are nested under the oneof's name."""
    for name in ("modified_details", "modifiedDetails"):
        inner = optional_object(data.get(name))
        if inner is not None:
            return {**data, **inner}
    return dict(data)
