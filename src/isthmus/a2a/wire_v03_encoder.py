"""A2A 0.3 over JSON-RPC, answers: the Task and its status-update events, with the extension and without.

With the extension every event is as Appendix A of spec 2 has it: ``{URI: {"kind": ..., "model": ...}}`` in the
metadata and a Message with the content. The metadata object also holds, as additions of ours: ``answered_by``
(TOOL_CALL_CONFIRMATION), ``reason`` (STATE_CHANGE, a machine-readable word), ``retry`` (STATE_CHANGE while a model
request is tried again). Without it only text, states and questions go out. Sans-I/O.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, assert_never

from isthmus.a2a.questions import question_text
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.codec import to_json
from isthmus.events import (
    ConfirmationAccepted,
    DevelopmentToolEventKind,
    EditorContext,
    ModelReply,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCall,
    ToolCallUpdate,
    ToolResultRecorded,
)

JsonDict = dict[str, Any]


def encode_task(snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None) -> JsonDict:
    """A Task. ``status.message`` holds the pending questions, the final text of a completed task, or the error.

    At most ``history_length`` messages go out, all that the snapshot has when it is None.
    """
    task: JsonDict = {
        "kind": "task",
        "id": snapshot.task_id,
        "contextId": snapshot.context_id,
        "status": _status(snapshot.state, snapshot.updated_at, _task_message(snapshot, uri)),
    }
    count = len(snapshot.history)
    messages = snapshot.history[count - min(count if history_length is None else history_length, count) :]
    if messages:
        task["history"] = [_history(snapshot, message) for message in messages]
    if uri is not None:
        task["metadata"] = {uri: _task_metadata(snapshot)}
    return task


def timestamp(at: float) -> str:
    """Unix seconds as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class StreamEncoder:
    """The events of one stream, in order.

    ``snapshot`` is the task as it stood when the stream began. ``answered`` are the calls that the request of this
    stream has answered itself: the news of that, and of the work that begins, are not sent back to it while they come
    first (Appendix A, step 7).
    """

    def __init__(self, snapshot: TaskSnapshot, uri: str | None, *, answered: frozenset[str] = frozenset()) -> None:
        self._snapshot = snapshot
        self._uri = uri
        self._answered = answered
        self._begun = False
        self._ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}

    def may_be_last(self, delivery: Delivery) -> bool:
        """The stream may end with this event, unless it is followed by others (in a replay)."""
        return isinstance(delivery.event, StateChange) and delivery.event.state.ends_stream

    def asks(self, delivery: Delivery) -> bool:
        """The event says that a person is asked."""
        return isinstance(delivery.event, StateChange) and delivery.event.state is TaskState.INPUT_REQUIRED

    def encode(self, delivery: Delivery, *, final: bool = False, pending: Sequence[ToolCall] = ()) -> JsonDict | None:
        """The status-update event of a delivery, None for what this client is not told.

        ``final`` says that the stream ends with it; ``pending`` are the calls that wait for the person then.
        """
        if self._is_echo(delivery):
            return None
        encoded = self._encode(delivery, final, pending)
        self._begun = self._begun or encoded is not None
        return encoded

    def _is_echo(self, delivery: Delivery) -> bool:
        if self._begun or not self._answered:
            return False
        match delivery.event:
            case ConfirmationAccepted(confirmation):
                return confirmation.tool_call_id in self._answered
            case StateChange(state):
                return state is TaskState.WORKING
            case _:
                return False

    def _encode(self, delivery: Delivery, final: bool, pending: Sequence[ToolCall]) -> JsonDict | None:
        kinds = DevelopmentToolEventKind
        match delivery.event:
            case StateChange() as change:
                return self._state_change(change, delivery, final, pending)
            case ToolCallUpdate(call):
                return self._extended(delivery, kinds.TOOL_CALL_UPDATE, self._data(delivery, to_json(call)))
            case TextContent(message_id, text):
                return self._event(delivery, kinds.TEXT_CONTENT, self._message(message_id, [_text_part(text)]))
            case Thought(thought):
                return self._extended(delivery, kinds.THOUGHT, self._data(delivery, to_json(thought)))
            case ConfirmationAccepted(confirmation, answered_by):
                content = self._data(delivery, to_json(confirmation))
                return self._extended(delivery, kinds.TOOL_CALL_CONFIRMATION, content, answered_by=answered_by)
            case RetryNotice(attempt, attempts, delay, reason):
                error = f"{reason}; attempt {attempt} of {attempts} follows in {delay:g} s"
                retry = {"attempt": attempt, "attempts": attempts, "delay": delay, "reason": reason}
                content = self._message(self._message_id(delivery), [])
                return self._extended(delivery, kinds.STATE_CHANGE, content, error=error, retry=retry)
            case Prompt() | EditorContext() | ModelReply() | ToolResultRecorded():
                return None
            case _:
                assert_never(delivery.event)

    def _state_change(
        self, change: StateChange, delivery: Delivery, final: bool, pending: Sequence[ToolCall]
    ) -> JsonDict | None:
        if change.state is TaskState.SUBMITTED:
            return None  # the Task itself says so
        parts: list[JsonDict] = []
        if change.state is TaskState.INPUT_REQUIRED:
            parts = pending_parts(pending, self._uri)
        elif change.error is not None:
            parts = [_text_part(change.error)]
        content = self._message(self._message_id(delivery), parts) if parts or self._uri is not None else None
        kind = DevelopmentToolEventKind.STATE_CHANGE
        more = {"error": change.error, "reason": change.reason}
        return self._event(delivery, kind, content, state=change.state, final=final, **more)

    def _extended(
        self, delivery: Delivery, kind: DevelopmentToolEventKind, content: JsonDict, **more: Any
    ) -> JsonDict | None:
        return None if self._uri is None else self._event(delivery, kind, content, **more)

    def _event(
        self,
        delivery: Delivery,
        kind: DevelopmentToolEventKind,
        content: JsonDict | None,
        *,
        state: TaskState = TaskState.WORKING,
        final: bool = False,
        **more: Any,
    ) -> JsonDict:
        event: JsonDict = {
            "kind": "status-update",
            **self._ids,
            "status": _status(state, delivery.at, content),
            "final": final,
        }
        if self._uri is not None:
            metadata: JsonDict = {"kind": kind.name}
            if self._snapshot.model:
                metadata["model"] = self._snapshot.model
            metadata.update((name, value) for name, value in more.items() if value is not None)
            event["metadata"] = {self._uri: metadata}
        return event

    def _data(self, delivery: Delivery, data: JsonDict) -> JsonDict:
        return self._message(self._message_id(delivery), [_data_part(data)])

    def _message(self, message_id: str, parts: list[JsonDict]) -> JsonDict:
        return {"kind": "message", "role": "agent", "messageId": message_id, "parts": parts, **self._ids}

    def _message_id(self, delivery: Delivery) -> str:
        if delivery.seq is not None:
            return f"{self._snapshot.task_id}-{delivery.seq}"
        call = delivery.event.tool_call.tool_call_id if isinstance(delivery.event, ToolCallUpdate) else "progress"
        return f"{self._snapshot.task_id}-{call}"


def pending_parts(pending: Sequence[ToolCall], uri: str | None) -> list[JsonDict]:
    """The parts that put the pending questions: every call whole, and described in text for plain clients."""
    parts: list[JsonDict] = []
    for call in pending:
        if uri is None:
            parts.append(_text_part(question_text(call)))
        parts.append(_data_part(to_json(call)))
    return parts


def _task_message(snapshot: TaskSnapshot, uri: str | None) -> JsonDict | None:
    if snapshot.state is TaskState.COMPLETED:
        last = snapshot.history[-1] if snapshot.history else None
        return _history(snapshot, last) if last is not None and last.role == "agent" else None
    parts: list[JsonDict] = []
    if snapshot.pending:
        # Also while another call runs: what waits can be answered.
        parts = pending_parts(snapshot.pending, uri)
    elif snapshot.error is not None:
        parts = [_text_part(snapshot.error)]
    if not parts:
        return None
    ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}
    message_id = f"{snapshot.task_id}-{snapshot.seq}"
    return {"kind": "message", "role": "agent", "messageId": message_id, "parts": parts, **ids}


def _task_metadata(snapshot: TaskSnapshot) -> JsonDict:
    metadata: JsonDict = {
        "workspace_path": snapshot.workspace,
        "seq": snapshot.seq,
        "created_at": timestamp(snapshot.created_at),
    }
    optional = {
        "title": snapshot.title or None,
        "model": snapshot.model or None,
        "error": snapshot.error,
        "reason": snapshot.reason,
    }
    metadata.update((name, value) for name, value in optional.items() if value is not None)
    return metadata


def _history(snapshot: TaskSnapshot, message: HistoryMessage) -> JsonDict:
    return {
        "kind": "message",
        "role": message.role,
        "messageId": message.message_id,
        "parts": [_text_part(message.text)],
        "taskId": snapshot.task_id,
        "contextId": snapshot.context_id,
    }


def _status(state: TaskState, at: float, message: JsonDict | None) -> JsonDict:
    status: JsonDict = {"state": state.value}
    if message is not None:
        status["message"] = message
    status["timestamp"] = timestamp(at)
    return status


def _text_part(text: str) -> JsonDict:
    return {"kind": "text", "text": text}


def _data_part(data: JsonDict) -> JsonDict:
    return {"kind": "data", "data": data}
