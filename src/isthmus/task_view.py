"""A task as a user sees it, folded from its events: texts, artifacts, thoughts, tool calls, questions and state.

To draw a task, pass every delivery of a Turn to :meth:`TaskView.apply`, and draw the view. ``apply`` does no I/O, and
its cost does not grow with the history. Events that were seen before change nothing, so that a stream can be resumed
with an overlap. Progress that is not stored (``live_content``) does not count when views are compared.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from isthmus.client import MISSED_EVENTS, OFFLINE, Delivery, TaskSnapshot
from isthmus.development_tool import AgentThought, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import (
    AgentMessage,
    ArtifactPart,
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
from isthmus.internal_events import (
    Checkpoint,
    Compacted,
    InternalEvent,
    ModelReply,
    ModelUsed,
    Rewound,
    ThoughtProgress,
    ToolResultRecorded,
)
from isthmus.text.money import show_cost
from isthmus.todo_list import Todo, todos_of


@dataclass(slots=True)
class MessageView:
    """A text of the agent, in the increments in which it arrived."""

    message_id: str
    increments: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """Text so far."""
        return "".join(self.increments)


@dataclass(slots=True)
class ArtifactView:
    """An artifact so far. ``messages_before`` is the number of messages that had begun when it last changed."""

    artifact_id: str
    name: str | None = None
    description: str | None = None
    parts: list[ArtifactPart] = field(default_factory=list[ArtifactPart])
    is_whole: bool = False
    messages_before: int = 0

    @property
    def text(self) -> str:
        """Content as text."""
        return text_of_parts(self.parts)


@dataclass(slots=True)
class CallView:
    """A tool call, and the answer to its question. Times are Unix seconds."""

    call: ToolCall
    was_asked: bool = False
    confirmation: ToolCallConfirmation | None = None
    answered_by: str | None = None
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def is_open_question(self) -> bool:
        """Whether a user is asked and no answer has been accepted yet."""
        waits = self.call.status is ToolCallStatus.PENDING and self.call.confirmation_request is not None
        return waits and self.confirmation is None

    @property
    def duration(self) -> float:
        """Seconds between the start and the end of the execution; 0 if either is not known."""
        return 0.0 if self.started_at is None or self.ended_at is None else max(0.0, self.ended_at - self.started_at)


SUMMARIES = "(summaries of the conversation)"
"""Name in place of a model for the usage of summaries in older journals, which do not say the model."""


@dataclass(slots=True)
class ModelUsage:
    """Requests to one model, failed ones among them, and their tokens; ``latency`` is their time in seconds.

    ``input_tokens`` include cached ones, ``output_tokens`` include thoughts. ``cost`` is in picodollars; what
    ``unpriced`` of the requests cost is not known and not in it.
    """

    requests: int = 0
    errors: int = 0
    latency: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    cost: int = 0
    unpriced: int = 0

    @classmethod
    def of(cls, used: ModelReply | ModelUsed | Compacted) -> "ModelUsage":
        """Return the usage that an event reports."""
        requests, unpriced = (used.requests, used.unpriced) if isinstance(used, ModelUsed) else (1, 0)
        return cls(
            requests,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cached_tokens,
            thought_tokens=used.thought_tokens,
            cost=used.cost or 0,
            unpriced=requests if used.cost is None else unpriced,
        )

    def __iadd__(self, other: "ModelUsage") -> "ModelUsage":
        self.requests += other.requests
        self.errors += other.errors
        self.latency += other.latency
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens
        self.thought_tokens += other.thought_tokens
        self.cost += other.cost
        self.unpriced += other.unpriced
        return self


def total_usage(models: Iterable[ModelUsage]) -> ModelUsage:
    """Return the sum of usages."""
    whole = ModelUsage()
    for used in models:
        whole += used
    return whole


def cost_of(models: Mapping[str, ModelUsage]) -> str:
    """Return what requests to models cost as text, with the models whose price is not known."""
    return show_cost(total_usage(models.values()).cost, unpriced_models(models))


def unpriced_models(models: Mapping[str, ModelUsage]) -> tuple[str, ...]:
    """Return the names of the models of which a request has no known cost."""
    return tuple(name for name, used in models.items() if used.unpriced)


@dataclass(slots=True)
class TaskView:
    """One task after its events so far.

    ``seq`` is the number of the last stored event seen. ``calls``, ``live``, ``messages`` and ``artifacts`` are by id,
    in the order in which they began. ``command`` is the slash command that the task runs. ``has_missed``: the
    connection broke, and events may be missing. ``rewound_text`` is the message before which the task has put the
    conversation.
    """

    state: TaskState = TaskState.SUBMITTED
    error: str | None = None
    reason: str | None = None
    seq: int = 0
    workspace: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    prompts: list[Prompt] = field(default_factory=list[Prompt])
    command: Command | None = None
    messages: dict[str, MessageView] = field(default_factory=dict[str, MessageView])
    artifacts: dict[str, ArtifactView] = field(default_factory=dict[str, ArtifactView])
    thoughts: list[AgentThought] = field(default_factory=list[AgentThought])
    calls: dict[str, CallView] = field(default_factory=dict[str, CallView])
    compactions: list[Compacted] = field(default_factory=list[Compacted])
    checkpoints: list[Checkpoint] = field(default_factory=list[Checkpoint])
    has_missed: bool = False
    rewound_text: str = ""
    models: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    live: dict[str, str] = field(default_factory=dict[str, str], compare=False)
    request_began_at: float | None = None
    failed_requests: int = 0

    @classmethod
    def of_snapshot(cls, snapshot: TaskSnapshot) -> "TaskView":
        """Return a view from which a stream can continue: with state and open questions, without earlier events."""
        calls = {call.tool_call_id: CallView(call, was_asked=True) for call in snapshot.pending}
        state = snapshot.state
        return cls(state, snapshot.error, snapshot.reason, snapshot.seq, snapshot.workspace, calls=calls)

    @property
    def final_text(self) -> str:
        """The answer: the texts of the artifacts, if any, and the last text after them that is not blank."""
        artifacts = [artifact for artifact in self.artifacts.values() if artifact.text.strip()]
        shown = [artifact.text for artifact in artifacts]
        after = max((artifact.messages_before for artifact in artifacts), default=0)
        for index, message in reversed(list(enumerate(self.messages.values()))):
            if index < after:
                break
            if (text := message.text).strip():
                shown.append(text)
                break
        return "\n\n".join(text.strip("\n") for text in shown) if artifacts else "".join(shown)

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The agent's plan: the list of the last call that stated one."""
        for view in reversed(self.calls.values()):
            if view.call.status is ToolCallStatus.SUCCEEDED and (todos := todos_of(view.call)) is not None:
                return todos
        return ()

    @property
    def questions(self) -> tuple[CallView, ...]:
        """Calls that wait for a user, in the order in which they came."""
        if self.state.is_terminal:
            return ()
        return tuple(call for call in self.calls.values() if call.is_open_question)

    @property
    def duration(self) -> float:
        """Seconds between the first and the last event seen."""
        return 0.0 if self.started_at is None or self.ended_at is None else max(0.0, self.ended_at - self.started_at)

    def apply(self, delivery: Delivery) -> bool:
        """Apply one event; return False if it was seen before, or is progress of a task that has ended."""
        event, at = delivery.event, delivery.at
        if isinstance(event, ThoughtProgress):
            return not self.state.is_terminal
        if isinstance(event, ToolCallUpdate) and event.is_ephemeral:
            if self.state.is_terminal:
                return False
            self.live[event.tool_call.tool_call_id] = event.tool_call.live_content or ""
            return True
        if delivery.seq is not None:
            if delivery.seq <= self.seq:
                return False
            self.seq = delivery.seq
        self.started_at = at if self.started_at is None else self.started_at
        self.ended_at = at
        match event:
            case Prompt():
                self.prompts.append(event)
            case Command():
                self.command = event
            case StateChange():
                self._change_state(event, at)
            case ToolCallUpdate():
                self._update_call(event.tool_call, at)
            case TextContent() | AgentMessage(was_streamed=False):
                if event.replaces is not None:
                    self._drop_message(event.replaces)
                view = self.messages.setdefault(event.message_id, MessageView(event.message_id))
                view.increments.append(event.text)
            case Thought():
                self.thoughts.append(event.thought)
            case ArtifactUpdate():
                self._update_artifact(event)
            case Compacted():
                self.compactions.append(event)
                self._count(event, at)
            case Checkpoint():
                self.checkpoints.append(event)
            case Rewound(text=text):
                self.rewound_text = text
            case ConfirmationAccepted():
                self.take_answer(event)
            case RetryNotice():
                self.failed_requests += 1
                self.request_began_at = at
            case ModelReply() | ModelUsed():
                self._count(event, at)
            case ToolResultRecorded():
                self.request_began_at = at
            case AgentMessage() | InternalEvent():
                pass
            case _:
                assert_never(event)
        return True

    @property
    def is_offline(self) -> bool:
        """Whether the work waits for a network that is away."""
        return self.state is TaskState.WORKING and self.reason == OFFLINE

    def take_answer(self, accepted: ConfirmationAccepted) -> None:
        """Record the answer to a call's question; the first answer counts."""
        view = self.calls.get(accepted.confirmation.tool_call_id)
        if view is not None and view.confirmation is None:
            view.confirmation, view.answered_by = accepted.confirmation, accepted.answered_by

    def take_snapshot(self, snapshot: TaskSnapshot) -> None:
        """Take state and questions from a snapshot, if the events that led to it are not available."""
        self.state, self.error, self.reason = snapshot.state, snapshot.error, snapshot.reason
        self.seq = max(self.seq, snapshot.seq)
        pending = {call.tool_call_id: call for call in snapshot.pending}
        for view in self.questions:
            if view.call.tool_call_id not in pending:
                view.call = replace(view.call, confirmation_request=None)
        for call in pending.values():
            if call.tool_call_id not in self.calls:
                self.calls[call.tool_call_id] = CallView(call, was_asked=True)

    def _drop_message(self, message_id: str) -> None:
        """Remove a text that is replaced by another one."""
        ids = list(self.messages)
        if message_id in ids:
            del self.messages[message_id]
            for artifact in self.artifacts.values():
                artifact.messages_before -= ids.index(message_id) < artifact.messages_before

    def _change_state(self, change: StateChange, at: float) -> None:
        self.state, self.error, self.reason = change.state, change.error, change.reason
        self.has_missed = self.has_missed or change.reason == MISSED_EVENTS
        if change.state is TaskState.WORKING:
            self.request_began_at = at
        elif change.state.is_terminal:
            self.live.clear()

    def _update_artifact(self, update: ArtifactUpdate) -> None:
        view = self.artifacts.get(update.artifact_id)
        if view is None or not update.append:
            view = self.artifacts[update.artifact_id] = ArtifactView(update.artifact_id)
        view.name, view.description = update.name or view.name, update.description or view.description
        view.parts.extend(update.parts)
        view.is_whole = update.last_chunk
        view.messages_before = len(self.messages)

    def _update_call(self, call: ToolCall, at: float) -> None:
        view = self.calls.get(call.tool_call_id)
        if view is None:
            view = self.calls[call.tool_call_id] = CallView(call)
        view.call = call
        if call.confirmation_request is not None:
            view.was_asked = True
        if call.status is ToolCallStatus.EXECUTING and view.started_at is None:
            view.started_at = at
        if call.status.is_final:
            view.ended_at = at
            self.live.pop(call.tool_call_id, None)
            self.request_began_at = at

    def _count(self, used: ModelReply | ModelUsed | Compacted, at: float) -> None:
        usage = self.models.setdefault(model_of(used), ModelUsage())
        usage += ModelUsage.of(used)
        if isinstance(used, ModelReply):
            usage.requests += self.failed_requests
            usage.errors += self.failed_requests
            usage.latency += max(0.0, at - self.request_began_at) if self.request_began_at is not None else 0.0
            self.failed_requests, self.request_began_at = 0, None


def model_of(used: ModelReply | ModelUsed | Compacted) -> str:
    """Return the name under which an event's usage counts."""
    return used.model or SUMMARIES if isinstance(used, Compacted) else used.model


def text_of_parts(parts: Sequence[ArtifactPart]) -> str:
    """Return parts as text: texts as they are, data as JSON, files by their names and addresses."""
    shown: list[str] = []
    for part in parts:
        if part.text is not None:
            shown.append(part.text)
        elif part.data is not None:
            shown.append(f"\n```json\n{json.dumps(part.data, ensure_ascii=False, indent=2)}\n```\n")
        else:
            shown.append(f"\n[{_file(part)}]\n")
    return "".join(shown)


def _file(part: ArtifactPart) -> str:
    """Return a file part in words: its name, kind, and address or size."""
    name = part.filename or "file"
    kind = f" ({part.media_type})" if part.media_type else ""
    place = part.url if part.url is not None else f"{len(part.raw or '') * 3 // 4:,} bytes"
    return f"{name}{kind}: {place}"
