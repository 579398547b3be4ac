"""Events of a task: ``AgentEvent`` is the closed union of everything that leaves the agent, one journal row each.

The messages in them are defined in :mod:`isthmus.development_tool`; ``isthmus.a2a`` encodes events for the wire.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias, get_args

from isthmus.development_tool import AgentThought, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.encoding.codec import JsonObject, from_json, to_json
from isthmus.encoding.value_count import size_of_value
from isthmus.errors import DecodeError
from isthmus.internal_events import (
    AgentRecord,
    CacheEmptied,
    ChatResumed,
    Checkpoint,
    CommandPrompt,
    Compacted,
    ContextNote,
    EffortChosen,
    EnvironmentContext,
    FilesSeen,
    FolderIncluded,
    LoopNotice,
    MediaRefused,
    ModelChosen,
    ModelReply,
    ModelUsed,
    PromptBegun,
    PromptChanged,
    ReferredContent,
    Restored,
    ResultsPruned,
    Rewound,
    SubagentBegun,
    ThoughtProgress,
    ToolResultRecorded,
    ToolsLoaded,
    WindowLearned,
    WorktreeUsed,
    former_note,
)
from isthmus.media import Media
from isthmus.record import record
from isthmus.runtime.large_values import LARGE_BYTES


class TaskState(StrEnum):
    """State of a task, among A2A's states, by its wire name in version 0.3."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    AUTH_REQUIRED = "auth-required"

    @property
    def is_terminal(self) -> bool:
        """Whether the work has ended, successfully or not."""
        return self in _TERMINAL

    @property
    def is_waiting(self) -> bool:
        """Whether the task waits for a user: for an answer, or for a login elsewhere."""
        return self in _WAITING

    @property
    def ends_stream(self) -> bool:
        """Whether a stream ends here: the work has ended, or a user is asked."""
        return self in _TERMINAL or self in _WAITING


_TERMINAL = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)
_WAITING = (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)


@record
class Prompt:
    """A user's message that starts or continues a task.

    ``text`` is its readable content. ``parts`` is the whole content of a message that is more than one text; ``media``
    are its parts that an agent has put into files. ``settings`` are the AgentSettings that came with the message, as
    received; ``metadata`` is the message's own. ``is_steering``: it is for the work under way, and the model reads it
    before its next message. ``extension`` is as in :class:`~isthmus.client.PromptMessage`.
    """

    message_id: str
    text: str
    settings: JsonObject | None = None
    parts: "tuple[MessagePart, ...]" = ()
    media: tuple[Media, ...] = ()
    metadata: JsonObject | None = None
    is_steering: bool = False
    extension: str | None = None

    @property
    def content(self) -> "tuple[MessagePart, ...]":
        """Parts of the message as received."""
        return self.parts or (MessagePart(text=self.text),)


@record
class Command:
    """A slash command that starts a task of its own; ``path`` is e.g. ``("memory", "add")``, ``args`` as typed.

    ``settings`` are the AgentSettings that came with the request, as received. The model does not see the command,
    unless it adds a :class:`CommandPrompt`. ``extension`` is as in :class:`~isthmus.client.PromptMessage`.
    """

    message_id: str
    path: tuple[str, ...]
    args: str = ""
    settings: JsonObject | None = None
    extension: str | None = None


@record
class StateChange:
    """The task entered ``state``. ``error`` says why it failed; ``reason`` is a machine-readable word for it."""

    state: TaskState
    error: str | None = None
    reason: str | None = None


@record
class ToolCallUpdate:
    """A tool call changed; ``tool_call`` is the whole call. Its other fields are not shown to clients.

    ``tool_version`` is the version of the tool about which a user is asked, if its definition can change
    (:func:`isthmus.tools.port.base.version_of`): the answer holds for that version. ``asked_in`` is the process in
    whose memory another call waits for the answer to this one; the question is lost if that process ends.
    """

    tool_call: ToolCall
    tool_version: str | None = None
    asked_in: str | None = None

    @property
    def is_ephemeral(self) -> bool:
        """Whether this is progress that the next update replaces: it is sent, but not stored."""
        return self.tool_call.status is ToolCallStatus.EXECUTING and self.tool_call.live_content is not None


@record
class TextContent:
    """More of the text ``message_id``: an increment, never a repetition.

    ``replaces`` is the id of a text that is void from now on, because its process or the model's stream ended in the
    middle of it; this is the beginning of what comes in its place. It is empty if no text follows. The two ids may be
    the same. The engine sets it after the end of a process.
    """

    message_id: str
    text: str
    replaces: str | None = None


@record
class AgentMessage:
    """A whole message of the agent, for the task's history.

    ``was_streamed``: its text was sent before as TextContent of the same id, and is not sent again. The engine adds a
    message for streamed text that no :class:`ModelReply` contains. ``is_answer``: it is the whole answer, and a client
    that waits for the answer receives this message instead of a task. ``replaces`` is as in :class:`TextContent`.
    """

    message_id: str
    text: str
    was_streamed: bool = False
    is_answer: bool = False
    replaces: str | None = None


@record
class ArtifactPart:
    """A piece of an artifact or message: one of ``text``, ``data`` (JSON), ``raw`` (base64) and ``url`` is set."""

    text: str | None = None
    data: JsonObject | None = None
    raw: str | None = None
    url: str | None = None
    media_type: str | None = None
    filename: str | None = None

    @property
    def size(self) -> int:
        """About how many characters it has; of JSON at most somewhat more than a value needs to be large."""
        data = 0 if self.data is None else size_of_value(self.data, LARGE_BYTES)
        return len(self.text or "") + len(self.raw or "") + data


MessagePart: TypeAlias = ArtifactPart
"""A piece of a message."""


@record
class ArtifactUpdate:
    """An artifact of the task, or more of it (``append``); ``last_chunk``: it is complete now."""

    artifact_id: str
    parts: tuple[ArtifactPart, ...]
    name: str | None = None
    description: str | None = None
    append: bool = False
    last_chunk: bool = True


@record
class Thought:
    """A whole thought."""

    thought: AgentThought


@record
class ConfirmationAccepted:
    """An answer was accepted; ``answered_by`` names the surface or user that gave it.

    ``beside`` is the message that came with it. It becomes an event of its own once the answered call has run.
    """

    confirmation: ToolCallConfirmation
    answered_by: str
    message_id: str = ""
    beside: Prompt | None = None


@record
class RetryNotice:
    """A model request is tried again after ``delay`` seconds.

    With ``is_offline`` the network is away: it is tried again as soon as there is a connection, which is waited for at
    most ``delay`` seconds.
    """

    attempt: int
    attempts: int
    delay: float
    reason: str
    is_offline: bool = False

    @property
    def outlook(self) -> str:
        """The next step, as a part of a sentence."""
        if self.is_offline:
            longest = f"{self.delay:.3g} s" if self.delay < 60 else f"{self.delay / 60:.3g} min"
            return f"no connection: it goes on by itself when there is one (waits up to {longest})"
        return f"trying again in {self.delay:.3g} s (attempt {self.attempt} of {self.attempts})"


AgentEvent: TypeAlias = (
    Prompt
    | Command
    | CommandPrompt
    | SubagentBegun
    | FolderIncluded
    | ContextNote
    | EnvironmentContext
    | ReferredContent
    | StateChange
    | ToolCallUpdate
    | TextContent
    | AgentMessage
    | ArtifactUpdate
    | Thought
    | ThoughtProgress
    | ConfirmationAccepted
    | RetryNotice
    | ModelReply
    | ModelUsed
    | ToolResultRecorded
    | FilesSeen
    | Compacted
    | ResultsPruned
    | CacheEmptied
    | WindowLearned
    | MediaRefused
    | Checkpoint
    | Restored
    | Rewound
    | ChatResumed
    | ModelChosen
    | EffortChosen
    | WorktreeUsed
    | ToolsLoaded
    | PromptBegun
    | PromptChanged
    | LoopNotice
    | AgentRecord
)
"""Any event of a task."""

EVENT_TYPES: Mapping[str, type[AgentEvent]] = {kind.__name__: kind for kind in get_args(AgentEvent)}

FORMER_TYPES: Mapping[str, tuple[type[AgentEvent], Callable[[JsonObject], JsonObject]]] = {
    "EditorContext": (ContextNote, former_note)
}
"""Types of events in older journals: the type that each is now, and a function that returns its present JSON form."""


def event_to_json(event: AgentEvent) -> dict[str, Any]:
    """Return the JSON object of an event, its type name under ``type``."""
    return {"type": type(event).__name__, **to_json(event)}


def event_from_json(value: JsonObject) -> AgentEvent:
    """Return the event of a JSON object made by :func:`event_to_json`.

    Raises:
        DecodeError: an unknown type, or a field that does not fit.
    """
    name = str(value.get("type"))
    if (former := FORMER_TYPES.get(name)) is not None:
        kind, present = former
        return from_json(kind, present(value))
    kind = EVENT_TYPES.get(name)
    if kind is None:
        raise DecodeError("AgentEvent.type", "one of " + ", ".join(EVENT_TYPES), value.get("type"))
    return from_json(kind, value)
