"""A2A 0.3 over JSON-RPC, answers as a client reads them: Tasks into snapshots, stream items into AgentEvents.

Reads servers with the extension, and plain ones by their texts, artifacts and states. Sans-I/O. Deliberately not
here: connections and resuming (:mod:`isthmus.a2a.client`).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from isthmus.a2a.extension import envelope
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.codec import from_json
from isthmus.errors import DecodeError
from isthmus.events import (
    AgentEvent,
    AgentThought,
    ConfirmationAccepted,
    DevelopmentToolEvent,
    DevelopmentToolEventKind,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolCallUpdate,
)

_OTHER_STATES = {
    "auth-required": TaskState.INPUT_REQUIRED,
    "rejected": TaskState.FAILED,
    "unknown": TaskState.WORKING,
}
"""States of A2A that Isthmus has no word of its own for; the original is kept as the reason."""


def is_task(result: Mapping[str, Any]) -> bool:
    """The result is a Task, not an event or a message."""
    return result.get("kind") == "task"


def decode_task(result: object, uri: str | None, seq: int | None = None) -> TaskSnapshot:
    """The snapshot that a Task describes; what plain servers do not say is empty. ``seq`` is the id it came with.

    Raises:
        DecodeError: not a Task.
    """
    task = _object(result, "Task")
    status = _object(task.get("status"), "Task.status")
    state, reason = _state(status)
    message = _optional_object(status.get("message"))
    extended = (envelope(_optional_object(task.get("metadata")), uri) if uri else None) or {}
    updated_at = _time(status.get("timestamp"))
    kept = extended.get("seq")
    return TaskSnapshot(
        task_id=_text(task, "id", "Task"),
        context_id=_text(task, "contextId", "Task"),
        state=state,
        seq=seq if seq is not None else kept if isinstance(kept, int) else 0,
        workspace=str(extended.get("workspace_path", "")),
        created_at=_time(extended["created_at"]) if "created_at" in extended else updated_at,
        updated_at=updated_at,
        title=str(extended.get("title", "")),
        model=str(extended.get("model", "")),
        error=_optional_text(extended.get("error")) or (_joined(message) or None if _is_failed(state) else None),
        reason=_optional_text(extended.get("reason")) or reason,
        pending=() if state.is_terminal else tuple(_pending(message)),
        history=tuple(_history(task, message, state)),
    )


class StreamDecoder:
    """The items of the streams of one task, in order, over any number of connections."""

    def __init__(self, uri: str | None, state: TaskState | None = None) -> None:
        self._uri = uri
        self._state = state
        self._calls: dict[str, ToolCall] = {}
        self._artifacts: dict[str, int] = {}
        self.is_final = False
        """The last item said that no other follows."""

    @property
    def at_rest(self) -> bool:
        """The work has ended, or a person is asked: a stream that ends now is complete."""
        return self._state is not None and self._state.ends_stream

    def decode(self, result: object, seq: int | None) -> list[Delivery]:
        """The deliveries of one stream item.

        Raises:
            DecodeError: an item, or an object of the extension in it, does not have the documented shape.
        """
        item = _object(result, "stream item")
        match item.get("kind"):
            case "status-update":
                at = _time(_object(item.get("status"), "status-update.status").get("timestamp"))
                events = list(self._status_update(item))
                self.is_final = item.get("final") is True
            case "artifact-update":
                at = time.time()
                events = list(self._artifact(_object(item.get("artifact"), "artifact-update.artifact"), item))
            case "task":
                snapshot = decode_task(item, self._uri)
                at = snapshot.updated_at
                events = list(self._task(snapshot))
            case "message":
                at = time.time()
                events = [*self._texts(item), StateChange(TaskState.COMPLETED)]
                self._state, self.is_final = TaskState.COMPLETED, True
            case kind:
                raise DecodeError("stream item.kind", "task, message, status-update or artifact-update", kind)
        # One id covers the whole item: it goes with the last event, so that resuming after it skips none.
        last = len(events) - 1
        return [Delivery(seq if index == last else None, at, event) for index, event in enumerate(events)]

    def _status_update(self, item: Mapping[str, Any]) -> Iterator[AgentEvent]:
        status = _object(item.get("status"), "status-update.status")
        message = _optional_object(status.get("message")) or {}
        state, reason = _state(status)
        extended = envelope(_optional_object(item.get("metadata")), self._uri) if self._uri else None
        if extended is None:
            yield from self._plain(message, state, reason)
            return
        about = from_json(DevelopmentToolEvent, extended)
        kinds = DevelopmentToolEventKind
        match about.kind:
            case kinds.TEXT_CONTENT:
                yield from self._texts(message)
            case kinds.THOUGHT:
                for data in _data(message):
                    yield Thought(from_json(AgentThought, data))
            case kinds.TOOL_CALL_UPDATE:
                for data in _data(message):
                    yield self._call(from_json(ToolCall, data))
            case kinds.TOOL_CALL_CONFIRMATION:
                for data in _data(message):
                    yield self._confirmation(data, extended)
            case kinds.STATE_CHANGE:
                yield from self._state_change(about, extended, message, state, reason)
            case kinds.DEVELOPMENT_TOOL_EVENT_KIND_UNSPECIFIED:
                yield from self._plain(message, state, reason)
        self._state = state

    def _state_change(
        self,
        about: DevelopmentToolEvent,
        extended: Mapping[str, Any],
        message: Mapping[str, Any],
        state: TaskState,
        reason: str | None,
    ) -> Iterator[AgentEvent]:
        if isinstance(extended.get("retry"), Mapping):
            yield from_json(RetryNotice, extended["retry"], "retry")
            return
        yield from self._unseen(_pending(message))
        yield StateChange(state, about.error, _optional_text(extended.get("reason")) or reason)

    def _confirmation(self, data: Mapping[str, Any], extended: Mapping[str, Any]) -> AgentEvent:
        if "status" in data:  # servers that put the question itself under this kind
            return self._call(from_json(ToolCall, data))
        answered_by = _optional_text(extended.get("answered_by")) or "somebody"
        return ConfirmationAccepted(from_json(ToolCallConfirmation, data), answered_by)

    def _plain(self, message: Mapping[str, Any], state: TaskState, reason: str | None) -> Iterator[AgentEvent]:
        calls = list(_pending(message))
        yield from self._unseen(calls)
        is_failed = _is_failed(state)
        if not calls and not is_failed:
            yield from self._texts(message)
        if state is not self._state:
            self._state = state
            yield StateChange(state, _joined(message) or None if is_failed else None, reason)

    def _task(self, snapshot: TaskSnapshot) -> Iterator[AgentEvent]:
        yield from self._unseen(snapshot.pending)
        if snapshot.state is not self._state:
            self._state = snapshot.state
            yield StateChange(snapshot.state, snapshot.error, snapshot.reason)

    def _unseen(self, calls: Iterator[ToolCall] | Sequence[ToolCall]) -> Iterator[AgentEvent]:
        for call in calls:
            if self._calls.get(call.tool_call_id) != call:
                yield self._call(call)

    def _call(self, call: ToolCall) -> ToolCallUpdate:
        if call.status.is_final:
            self._calls.pop(call.tool_call_id, None)
        else:
            self._calls[call.tool_call_id] = call
        return ToolCallUpdate(call)

    def _texts(self, message: Mapping[str, Any]) -> Iterator[TextContent]:
        text = _joined(message)
        if text:
            yield TextContent(_optional_text(message.get("messageId")) or "text", text)

    def _artifact(self, artifact: Mapping[str, Any], item: Mapping[str, Any]) -> Iterator[TextContent]:
        name = _optional_text(artifact.get("artifactId")) or "artifact"
        if item.get("append") is not True:
            self._artifacts[name] = self._artifacts.get(name, 0) + 1
        text = _joined(artifact)
        if text:
            yield TextContent(f"{name}-{self._artifacts.get(name, 1)}", text)


def _history(task: Mapping[str, Any], last: Mapping[str, Any] | None, state: TaskState) -> Iterator[HistoryMessage]:
    seen: set[str] = set()
    messages = _objects(task.get("history"))
    if last is not None and state is TaskState.COMPLETED:
        messages.append(last)
    for message in messages:
        message_id = _optional_text(message.get("messageId")) or ""
        text = _joined(message)
        if text and not (message_id and message_id in seen):
            seen.add(message_id)
            yield HistoryMessage(message_id, "user" if message.get("role") == "user" else "agent", text)


def _pending(message: Mapping[str, Any] | None) -> Iterator[ToolCall]:
    for data in _data(message or {}):
        if ("tool_call_id" in data or "toolCallId" in data) and "status" in data:
            call = from_json(ToolCall, data)
            if call.status is ToolCallStatus.PENDING:
                yield call


def _data(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for part in _objects(message.get("parts")):
        data = part.get("data")
        if part.get("kind") == "data" and isinstance(data, Mapping):
            yield cast("Mapping[str, Any]", data)


def _joined(holder: Mapping[str, Any] | None) -> str:
    parts = _objects((holder or {}).get("parts"))
    return "".join(str(part["text"]) for part in parts if part.get("kind") == "text" and "text" in part)


def _is_failed(state: TaskState) -> bool:
    return state in (TaskState.FAILED, TaskState.CANCELED)


def _state(status: Mapping[str, Any]) -> tuple[TaskState, str | None]:
    name = status.get("state")
    if isinstance(name, str) and name in _OTHER_STATES:
        return _OTHER_STATES[name], name
    try:
        return TaskState(name), None
    except ValueError as error:
        raise DecodeError("status.state", "a task state of A2A 0.3", name) from error


def _time(value: object) -> float:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return time.time()
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return time.time()


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DecodeError(where, "an object", value)
    return cast("Mapping[str, Any]", value)


def _optional_object(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _objects(value: object) -> list[Mapping[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]


def _text(source: Mapping[str, Any], name: str, where: str) -> str:
    value = source.get(name)
    if not isinstance(value, str):
        raise DecodeError(f"{where}.{name}", "a string", value)
    return value


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
