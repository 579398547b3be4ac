"""Encoder of tasks and their events in the dialect ``coderAgent``, as gemini-cli-a2a-server sends them. Sans-I/O.

Its states differ from ours: a turn ends with ``input-required``, never with ``completed``; while an answered call runs
the state stays ``input-required``, and ``working`` comes when the model is asked again. Its scheduler has two more
states than our calls, ``validating`` and ``scheduled``, which are sent on the way. The objects of calls are in
:mod:`isthmus.a2a.coder_agent.calls`.
"""

from collections.abc import Sequence
from typing import Any, assert_never, cast

from typing_extensions import override

from isthmus.a2a.coder_agent.calls import encode_call
from isthmus.a2a.coder_agent.vocabulary import KEY, CallStatus, EventKind, output_artifact, status_of
from isthmus.a2a.protocol.task_encoder import encode_artifact, retry_text, timestamp
from isthmus.a2a.v03.encoder import ShapeV03
from isthmus.a2a.wire import JsonDict, StreamEncoder
from isthmus.client import Delivery, HistoryMessage, TaskSnapshot
from isthmus.development_tool import ConfirmationDetails, ToolCall
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
from isthmus.internal_events import InternalEvent, ModelReply

UNKNOWN_MODEL = "unknown"
CANCELED = "Task canceled by user request."
_SHAPE = ShapeV03()
_FINAL = (CallStatus.SUCCESS, CallStatus.ERROR, CallStatus.CANCELLED)


def wire_state(state: TaskState) -> str:
    """Return the name of a task state; a completed task is ``input-required``, as it waits for the next message."""
    return (TaskState.INPUT_REQUIRED if state is TaskState.COMPLETED else state).value


def encode_task(snapshot: TaskSnapshot, history_length: int | None = None) -> JsonDict:
    """Return a Task. ``status.message`` holds the calls that wait for a user, or the error.

    With ``history_length`` 0 (in a push notification) it may also be the final text. The Task of gemini-cli-a2a-server
    does not have this message; without it a client that saw no stream could not answer.
    """
    ids = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}
    state = wire_state(snapshot.state)
    status: JsonDict = {"state": state}
    parts = [_SHAPE.data(encode_call(call, status_of(call), prompt_id(snapshot))) for call in snapshot.pending]
    if not parts and snapshot.error is not None:
        parts = [_SHAPE.text(snapshot.error)]
    last = snapshot.history[-1] if snapshot.history else None
    if not parts and history_length == 0 and snapshot.state is TaskState.COMPLETED and last is not None:
        parts = [_SHAPE.text(last.text)] if last.role == "agent" else []
    if parts:
        status["message"] = _SHAPE.message("agent", f"{snapshot.task_id}-{snapshot.seq}", parts, ids)
    status["timestamp"] = timestamp(snapshot.updated_at)
    settings = {"kind": EventKind.AGENT_SETTINGS.value, "workspacePath": snapshot.workspace}
    count = len(snapshot.history)
    messages = snapshot.history[count - min(count if history_length is None else history_length, count) :]
    return {
        "id": snapshot.task_id,
        "contextId": snapshot.context_id,
        "kind": "task",
        "status": status,
        "metadata": {
            "__persistedState": {"_agentSettings": settings, "_taskState": state},
            "_contextId": snapshot.context_id,
        },
        "history": [
            _SHAPE.message(message.role, message.message_id, [_SHAPE.text(message.text)], ids) for message in messages
        ],
        "artifacts": [encode_artifact(_SHAPE, artifact) for artifact in snapshot.artifacts],
    }


def prompt_id(snapshot: TaskSnapshot) -> str:
    """Return the id of the prompt of a task's calls, in the form of gemini-cli-a2a-server; we have one per task."""
    return f"{snapshot.task_id}########0"


class CoderAgentEncoder(StreamEncoder):
    """Encodes the events of one stream; ``answered`` are the calls that the request of this stream answered.

    ``snapshot`` is the task when the stream began. If events are replayed, which is always from the first one on, it is
    the task after them.
    """

    def __init__(
        self, snapshot: TaskSnapshot, *, answered: frozenset[str] = frozenset(), user_tier: str | None = None
    ) -> None:
        self._task_id = snapshot.task_id
        self._seq = snapshot.seq
        self._is_fresh = True
        self._ids: JsonDict = {"taskId": snapshot.task_id, "contextId": snapshot.context_id}
        self._prompt_id = prompt_id(snapshot)
        self._model = snapshot.model or UNKNOWN_MODEL
        self._user_tier = user_tier
        self._state = TaskState.INPUT_REQUIRED.value if answered else wire_state(snapshot.state)
        self._sent_statuses: dict[str, CallStatus] = dict.fromkeys(answered, CallStatus.AWAITING_APPROVAL)
        self._proposals: dict[str, ConfirmationDetails | None] = {}
        for call in snapshot.pending:
            self._see(call, CallStatus.AWAITING_APPROVAL)
        # The batch of calls that must end before the model is asked again. `working` is sent once when it begins, and
        # when it has ended, unless all its calls were refused.
        self._open: set[str] = set(self._sent_statuses)
        self._has_begun = bool(self._open)
        self._has_run = False

    @override
    def encode(
        self,
        delivery: Delivery,
        *,
        final: bool = False,
        pending: Sequence[ToolCall] = (),
        answer: HistoryMessage | None = None,
    ) -> Sequence[JsonDict]:
        if self._is_fresh:
            self._is_fresh = False
            if delivery.seq is not None and delivery.seq <= self._seq:
                self._forget()  # a replay from the first event on: the snapshot is newer
        match delivery.event:
            case StateChange() as change:
                return self._state_change(change, delivery, final)
            case ToolCallUpdate(call):
                return self._call(call, delivery)
            case TextContent(_, text) | AgentMessage(_, text, was_streamed=False):
                return self._said(delivery, EventKind.TEXT_CONTENT, _SHAPE.text(text)) if text else ()
            case Thought(thought):
                return self._said(delivery, EventKind.THOUGHT, _SHAPE.data(to_json(thought)))
            case RetryNotice() as notice:
                error = retry_text(notice)
                return (self._status(delivery, EventKind.STATE_CHANGE, error=error),)
            case ArtifactUpdate() as update:
                artifact = encode_artifact(_SHAPE, update)
                return (self._artifact(artifact, append=update.append, last_chunk=update.last_chunk),)
            case ModelReply(model=model, message=message):
                self._model = model or self._model
                self._expect(message)
                return ()
            case Prompt():
                self._open.clear()
                self._has_begun = False
                return ()
            case Command() | AgentMessage() | ConfirmationAccepted() | InternalEvent():
                return ()
            case _:
                assert_never(delivery.event)

    def _forget(self) -> None:
        self._state = TaskState.WORKING.value
        self._sent_statuses.clear()
        self._proposals.clear()
        self._open.clear()
        self._has_begun = False

    # --- states ---

    def _state_change(self, change: StateChange, delivery: Delivery, final: bool) -> Sequence[JsonDict]:
        match change.state:
            case TaskState.SUBMITTED:
                return ()
            case TaskState.WORKING if self._open and self._has_begun:
                return ()  # an answered call runs; the state is sent when the model is asked again
            case TaskState.WORKING | TaskState.INPUT_REQUIRED | TaskState.AUTH_REQUIRED | TaskState.COMPLETED:
                text = change.error
            case TaskState.CANCELED:
                text = change.error or CANCELED
            case TaskState.FAILED | TaskState.REJECTED:
                text = change.error or "Agent execution error"
            case _:
                assert_never(change.state)
        self._state = wire_state(change.state)
        parts = [_SHAPE.text(text)] if text is not None else None
        return (self._status(delivery, EventKind.STATE_CHANGE, parts, final=final, error=change.error),)

    def _resume(self, delivery: Delivery) -> list[JsonDict]:
        """Return a status ``working``, unless that is the last state sent."""
        if self._state == TaskState.WORKING.value:
            return []
        return [self._working(delivery)]

    def _working(self, delivery: Delivery) -> JsonDict:
        self._state = TaskState.WORKING.value
        return self._status(delivery, EventKind.STATE_CHANGE, number=1)

    def _said(self, delivery: Delivery, kind: EventKind, part: JsonDict) -> Sequence[JsonDict]:
        return (*self._resume(delivery), self._status(delivery, kind, [part]))

    # --- calls ---

    def _expect(self, reply: Any) -> None:
        """Add the calls in a reply of the model to the batch."""
        parts = cast("dict[str, Any]", reply).get("parts") or ()
        for part in cast("Sequence[dict[str, Any]]", parts):
            if part.get("type") == "tool_request" and isinstance(part.get("id"), str):
                self._open.add(part["id"])

    def _call(self, call: ToolCall, delivery: Delivery) -> Sequence[JsonDict]:
        status = status_of(call)
        if status is CallStatus.EXECUTING and call.live_content is not None:
            artifact = {"artifactId": output_artifact(call.tool_call_id), "parts": [_SHAPE.text(call.live_content)]}
            return (self._artifact(artifact, append=True, last_chunk=False),)
        items: list[JsonDict] = []
        if not self._has_begun:
            self._has_begun, self._has_run = True, False
            items.append(self._working(delivery))
        self._open.add(call.tool_call_id)
        sent = self._sent_statuses.get(call.tool_call_id)
        self._see(call, status)
        for step in _steps(sent, status):
            kind = (
                EventKind.TOOL_CALL_CONFIRMATION if step is CallStatus.AWAITING_APPROVAL else EventKind.TOOL_CALL_UPDATE
            )
            proposal = self._proposals.get(call.tool_call_id)
            data = encode_call(call, step, self._prompt_id, proposal)
            items.append(self._status(delivery, kind, [_SHAPE.data(data)], number=len(items)))
        if status in _FINAL:
            items.extend(self._end(call, status, delivery))
        return items

    def _end(self, call: ToolCall, status: CallStatus, delivery: Delivery) -> Sequence[JsonDict]:
        self._open.discard(call.tool_call_id)
        self._has_run = self._has_run or status is not CallStatus.CANCELLED
        if self._open:
            return ()
        self._has_begun = False
        return (self._working(delivery),) if self._has_run else ()

    def _see(self, call: ToolCall, status: CallStatus) -> None:
        self._sent_statuses[call.tool_call_id] = status
        if call.confirmation_request is not None:
            self._proposals[call.tool_call_id] = call.confirmation_request.details

    # --- objects ---

    def _status(
        self,
        delivery: Delivery,
        kind: EventKind,
        parts: list[JsonDict] | None = None,
        *,
        final: bool = False,
        error: str | None = None,
        number: int = 0,
    ) -> JsonDict:
        status: JsonDict = {"state": self._state}
        if parts is not None:
            message_id = f"{self._message_id(delivery)}-{number}" if number else self._message_id(delivery)
            status["message"] = _SHAPE.message("agent", message_id, parts, self._ids)
        status["timestamp"] = timestamp(delivery.at)
        metadata: JsonDict = {KEY: {"kind": kind.value}, "model": self._model}
        if self._user_tier is not None:
            metadata["userTier"] = self._user_tier
        if error is not None:
            metadata["error"] = error
        return {"kind": "status-update", **self._ids, "status": status, "final": final, "metadata": metadata}

    def _message_id(self, delivery: Delivery) -> str:
        if delivery.seq is not None:
            return f"{self._task_id}-{delivery.seq}"
        return f"{self._task_id}-{timestamp(delivery.at)}"

    def _artifact(self, artifact: JsonDict, *, append: bool, last_chunk: bool) -> JsonDict:
        flags = {"append": append, "lastChunk": last_chunk}
        return {"kind": "artifact-update", **self._ids, "artifact": artifact, **flags}


def _steps(sent: CallStatus | None, status: CallStatus) -> Sequence[CallStatus]:
    """Return the states to be sent on the way from the last one sent to ``status``, including it."""
    match status:
        case _ if sent is status:
            return ()
        case CallStatus.VALIDATING | CallStatus.SCHEDULED:
            return (status,)
        case CallStatus.EXECUTING:
            return (
                (CallStatus.VALIDATING, CallStatus.SCHEDULED, status)
                if sent is None
                else (CallStatus.SCHEDULED, status)
            )
        case CallStatus.AWAITING_APPROVAL | CallStatus.SUCCESS | CallStatus.ERROR | CallStatus.CANCELLED:
            return (CallStatus.VALIDATING, status) if sent is None else (status,)
        case _:
            assert_never(status)
