"""Encoder of tasks and their events as A2A items, with and without the development-tool extension. Sans-I/O.

It is the same for every protocol version; a :class:`Shape` writes the objects as its version does. With the extension
every event is as in Appendix A of its document: ``{URI: {"kind": ..., "model": ...}}`` in the metadata, and a Message
with the content. We add to that metadata object:

- ``answered_by`` (TOOL_CALL_CONFIRMATION)
- ``reason`` (STATE_CHANGE): a machine-readable word
- ``retry`` (STATE_CHANGE): while a model request is tried again
- ``usage``, ``checkpoints`` and ``pictures`` (any stored event, for clients that ask for notes): the tokens of the
  models and what they cost since the event before, and the checkpoints taken and the pictures that came since then
- ``replaces_message_id`` (TEXT_CONTENT, first part of a text): the text that is void, as it broke off halfway

Without the extension only states, artifacts and questions are sent, and the answer of a completed task as an artifact,
whole and once: agent frameworks read it there. Its texts while it works are sent to clients that ask for them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, assert_never

from typing_extensions import override

from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.protocol.text_questions import question_text
from isthmus.a2a.wire import JsonDict, StreamEncoder
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.development_tool import DevelopmentToolEventKind, ToolCall
from isthmus.encoding.codec import to_json
from isthmus.events import (
    AgentMessage,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import Checkpoint, Compacted, InternalEvent, ModelReply, ModelUsed, ToolResultRecorded
from isthmus.media import Media
from isthmus.session_status import US_DOLLARS
from isthmus.task_view import ModelUsage
from isthmus.text.money import in_dollars
from isthmus.text.visible import without_control_characters

USAGE = ("input_tokens", "output_tokens", "cached_tokens", "thought_tokens")
"""Counts of tokens, as :class:`ModelUsage` and the metadata name them."""


def encode_task(
    shape: Shape,
    snapshot: TaskSnapshot,
    uri: str | None,
    history_length: int | None = None,
    *,
    has_answer: bool = True,
    is_polled: bool = False,
) -> JsonDict:
    """Return a Task. ``status.message`` holds the pending questions, or the error.

    With the extension it holds the final text of a completed task. Without, that is the last artifact, unless
    ``has_answer`` is False. The history has at most ``history_length`` messages; None: all that the snapshot has.
    Beside an answer that is an artifact it has the user's messages alone if ``is_polled``: some clients that poll join
    the last message of the agent with the artifacts (docs/decisions/0052).
    """
    status = _status(shape, snapshot.state, snapshot.updated_at, _task_message(shape, snapshot, uri))
    task: JsonDict = {"id": snapshot.task_id, "contextId": snapshot.context_id, "status": status}
    artifacts = [encode_artifact(shape, artifact) for artifact in snapshot.artifacts]
    if uri is None and has_answer and (answer := answer_of(snapshot)) is not None:
        artifacts.append(_answer(shape, answer))
    if artifacts:
        task["artifacts"] = artifacts
    history = snapshot.history
    if is_polled and uri is None and answer_of(snapshot) is not None:
        history = tuple(message for message in history if message.role == "user")
    count = len(history)
    messages = history[count - min(count if history_length is None else history_length, count) :]
    if messages:
        task["history"] = [_history(shape, snapshot, message, uri) for message in messages]
    if uri is not None:
        task["metadata"] = {uri: _task_metadata(snapshot)}
    return shape.task(task)


def timestamp(at: float) -> str:
    """Return a Unix time in seconds as ISO 8601 in UTC, with milliseconds."""
    second, microseconds = divmod(round(at * 1_000_000), 1_000_000)
    return f"{_second(second)}.{microseconds // 1000:03d}Z"


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    # Events of one second share it; datetime would be made and formatted for each.
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec="seconds")


class StatusEncoder(StreamEncoder):
    """Encodes the events of one stream, in order.

    ``snapshot`` is the task when the stream began. ``answered`` are the calls that the request of this stream answered.
    The events of these answers, and of the work that begins with them, are not sent back to the client. That holds
    while they come first (Appendix A of the development-tool extension, step 7).
    """

    def __init__(
        self,
        shape: Shape,
        snapshot: TaskSnapshot,
        uri: str | None,
        *,
        answered: frozenset[str] = frozenset(),
        user_tier: str | None = None,
        has_notes: bool = False,
        progress_text: bool = False,
    ) -> None:
        self._shape = shape
        self._snapshot = snapshot
        self._uri = uri
        self._answered = answered
        self._user_tier = user_tier
        self._has_notes = has_notes
        self._has_texts = uri is not None or progress_text
        self._model = snapshot.model
        self._begun = False
        self._usage = ModelUsage()
        self._checkpoints: list[JsonDict] = []
        self._pictures: list[JsonDict] = []
        self._ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}

    @override
    def encode(
        self,
        delivery: Delivery,
        *,
        final: bool = False,
        pending: Sequence[ToolCall] = (),
        answer: HistoryMessage | None = None,
    ) -> Sequence[JsonDict]:
        if self._answered and not self._begun and self._is_echo(delivery):
            return ()
        encoded = self._encode(delivery, final, pending, answer)
        if encoded is None:
            return ()
        self._begun = True
        is_answer = isinstance(delivery.event, StateChange) and delivery.event.state is TaskState.COMPLETED
        if answer is None or self._uri is not None or not is_answer:
            return (encoded,)
        update = {**self._ids, "artifact": _answer(self._shape, answer), "append": False, "lastChunk": True}
        return (self._shape.artifact_update(update), encoded)

    def _is_echo(self, delivery: Delivery) -> bool:
        match delivery.event:
            case ConfirmationAccepted(confirmation):
                return confirmation.tool_call_id in self._answered
            case StateChange(state):
                return state is TaskState.WORKING
            case _:
                return False

    def _encode(
        self, delivery: Delivery, final: bool, pending: Sequence[ToolCall], answer: HistoryMessage | None
    ) -> JsonDict | None:
        kinds = DevelopmentToolEventKind
        match delivery.event:
            case StateChange() as change:
                return self._state_change(change, delivery, final, pending, answer)
            case ToolCallUpdate(call):
                return self._extended(delivery, kinds.TOOL_CALL_UPDATE, self._data(delivery, to_json(call)))
            case TextContent(message_id, text, replaces=torn) | AgentMessage(message_id, text, False, replaces=torn):
                if not self._has_texts:
                    return None
                content = self._message(message_id, [_text(self._shape, text, self._uri)])
                return self._event(delivery, kinds.TEXT_CONTENT, content, replaces_message_id=torn)
            case Thought(thought):
                return self._extended(delivery, kinds.THOUGHT, self._data(delivery, to_json(thought)))
            case ConfirmationAccepted(confirmation, answered_by):
                content = self._data(delivery, to_json(confirmation))
                return self._extended(delivery, kinds.TOOL_CALL_CONFIRMATION, content, answered_by=answered_by)
            case RetryNotice() as notice:
                error = retry_text(notice)
                retry = {name: value for name, value in to_json(notice).items() if name != "is_offline" or value}
                content = self._message(self._message_id(delivery), [])
                return self._extended(delivery, kinds.STATE_CHANGE, content, error=error, retry=retry)
            case ArtifactUpdate() as update:
                return self._artifact(update)
            case ModelReply(model=model) | ModelUsed(model=model) | Compacted(model=model) as used:
                if isinstance(used, ModelReply) or not self._model:
                    self._model = model or self._model
                self._usage += ModelUsage.of(used)
                return None
            case Checkpoint(checkpoint_id, call_id):
                self._checkpoints.append({"checkpoint_id": checkpoint_id, "tool_call_id": call_id})
                return None
            case ToolResultRecorded(call_id, media=media) if media:
                self._note_pictures(delivery, media, tool_call_id=call_id)
                return None
            case Prompt(message_id, media=media) if media:
                self._note_pictures(delivery, media, message_id=message_id)
                return None
            case Prompt() | Command() | AgentMessage() | InternalEvent():
                return None
            case _:
                assert_never(delivery.event)

    def _note_pictures(self, delivery: Delivery, media: Sequence[Media], **whose: str) -> None:
        numbers = [number for number, item in enumerate(media) if item.media_type.startswith("image/")]
        if numbers:
            self._pictures.append({**whose, "event": delivery.seq, "numbers": numbers})

    def _state_change(
        self,
        change: StateChange,
        delivery: Delivery,
        final: bool,
        pending: Sequence[ToolCall],
        said: HistoryMessage | None,
    ) -> JsonDict | None:
        if change.state is TaskState.SUBMITTED:
            return None  # already in the Task
        parts: list[JsonDict] = []
        if change.state.is_waiting and pending:
            parts = pending_parts(self._shape, pending, self._uri)
        elif change.state.is_waiting and self._uri is None and said is not None:
            parts = [_text(self._shape, said.text, self._uri)]
        elif change.error is not None:
            parts = [_text(self._shape, change.error, self._uri)]
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
        status = _status(self._shape, state, delivery.at, content)
        extended: JsonDict | None = None
        if self._uri is not None:
            metadata: JsonDict = {"kind": kind.name}
            if self._model:
                metadata["model"] = self._model
            if self._user_tier is not None:
                metadata["user_tier"] = self._user_tier
            metadata.update((name, value) for name, value in more.items() if value is not None)
            if self._has_notes and delivery.seq is not None:
                metadata.update(self._since())
            extended = {self._uri: metadata}
        return self._shape.status_update(self._ids, status, extended, final=final)

    def _since(self) -> JsonDict:
        """Return what happened since the last stored event of the stream.

        Only stored events have it: a client that goes on after one of them gets each of these once.
        """
        found: JsonDict = {}
        if self._usage.input_tokens or self._usage.output_tokens:
            found["usage"], self._usage = _usage(self._usage), ModelUsage()
        if self._checkpoints:
            found["checkpoints"], self._checkpoints = self._checkpoints, []
        if self._pictures:
            found["pictures"], self._pictures = self._pictures, []
        return found

    def _artifact(self, update: ArtifactUpdate) -> JsonDict:
        flags = {"append": update.append, "lastChunk": update.last_chunk}
        artifact = encode_artifact(self._shape, update)
        return self._shape.artifact_update({**self._ids, "artifact": artifact, **flags})

    def _data(self, delivery: Delivery, data: JsonDict) -> JsonDict:
        return self._message(self._message_id(delivery), [self._shape.data(data)])

    def _message(self, message_id: str, parts: list[JsonDict]) -> JsonDict:
        return self._shape.message("agent", message_id, parts, self._ids)

    def _message_id(self, delivery: Delivery) -> str:
        if delivery.seq is not None:
            return f"{self._snapshot.task_id}-{delivery.seq}"
        call = delivery.event.tool_call.tool_call_id if isinstance(delivery.event, ToolCallUpdate) else "progress"
        return f"{self._snapshot.task_id}-{call}"


def retry_text(notice: RetryNotice) -> str:
    """Return a notice about the next try as the error text of an event."""
    if notice.is_offline:
        return f"{notice.reason}; {notice.outlook}"
    return f"{notice.reason}; attempt {notice.attempt} of {notice.attempts} follows in {notice.delay:g} s"


def encode_artifact(shape: Shape, artifact: ArtifactUpdate) -> JsonDict:
    """Return an Artifact."""
    encoded: JsonDict = {"artifactId": artifact.artifact_id, "parts": [shape.part(part) for part in artifact.parts]}
    if artifact.name is not None:
        encoded["name"] = artifact.name
    if artifact.description is not None:
        encoded["description"] = artifact.description
    return encoded


def last_message_of(snapshot: TaskSnapshot) -> HistoryMessage | None:
    """Return the agent's message at the end of the history: an answer, or a question beside calls; None without."""
    last = snapshot.history[-1] if snapshot.history else None
    return last if last is not None and last.role == "agent" else None


def answer_of(snapshot: TaskSnapshot) -> HistoryMessage | None:
    """Return the answer of a completed task, if there is one."""
    return last_message_of(snapshot) if snapshot.state is TaskState.COMPLETED else None


def _answer(shape: Shape, answer: HistoryMessage) -> JsonDict:
    """Return the artifact that is the answer. It has the id of the message, so it is the same wherever it is sent."""
    return {"artifactId": answer.message_id, "name": "answer", "parts": [_text(shape, answer.text, None)]}


def pending_parts(shape: Shape, pending: Sequence[ToolCall], uri: str | None) -> list[JsonDict]:
    """Return the parts that ask the pending questions: each call, and a text for clients without the extension."""
    parts: list[JsonDict] = []
    for call in pending:
        if uri is None:
            parts.append(shape.text(question_text(call)))
        parts.append(shape.data(to_json(call)))
    return parts


def _task_message(shape: Shape, snapshot: TaskSnapshot, uri: str | None) -> JsonDict | None:
    if snapshot.state is TaskState.COMPLETED:
        answer = answer_of(snapshot) if uri is not None else None
        return _history(shape, snapshot, answer, uri) if answer is not None else None
    parts: list[JsonDict] = []
    if snapshot.pending:
        # Also while another call runs: these can already be answered.
        parts = pending_parts(shape, snapshot.pending, uri)
    elif snapshot.error is not None:
        parts = [_text(shape, snapshot.error, uri)]
    if not parts:
        question = last_message_of(snapshot) if uri is None and snapshot.state.is_waiting else None
        return _history(shape, snapshot, question, uri) if question is not None else None
    ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}
    message_id = f"{snapshot.task_id}-{snapshot.seq}"
    return shape.message("agent", message_id, parts, ids)


def _task_metadata(snapshot: TaskSnapshot) -> JsonDict:
    metadata: JsonDict = {"workspace_path": snapshot.workspace} if snapshot.workspace else {}
    metadata |= {"seq": snapshot.seq, "created_at": timestamp(snapshot.created_at)}
    optional = {
        "title": snapshot.title or None,
        "model": snapshot.model or None,
        "error": snapshot.error,
        "reason": snapshot.reason,
        "parent_task_id": snapshot.parent or None,
    }
    metadata.update((name, value) for name, value in optional.items() if value is not None)
    return metadata


def _history(shape: Shape, snapshot: TaskSnapshot, message: HistoryMessage, uri: str | None) -> JsonDict:
    ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}
    part = shape.text(message.text) if message.role == "user" else _text(shape, message.text, uri)
    return shape.message(message.role, message.message_id, [part], ids)


def _text(shape: Shape, text: str, uri: str | None) -> JsonDict:
    """Return a text of the agent. Clients without the extension print it, so that it does nothing to a terminal."""
    return shape.text(text if uri is not None else without_control_characters(text))


def _usage(used: ModelUsage) -> JsonDict:
    """Return tokens, and as far as they are known costs, for the metadata."""
    usage: JsonDict = {name: getattr(used, name) for name in USAGE}
    if used.requests > used.unpriced:
        usage["cost"] = {"amount": in_dollars(used.cost), "currency": US_DOLLARS}
    if used.unpriced:
        usage["unpriced_requests"] = used.unpriced
    return usage


def _status(shape: Shape, state: TaskState, at: float, message: JsonDict | None) -> JsonDict:
    status: JsonDict = {"state": shape.state(state)}
    if message is not None:
        status["message"] = message
    status["timestamp"] = timestamp(at)
    return status
