"""Events of a task: ``AgentEvent`` is the closed union of everything that leaves the agent, one journal row each.

The messages in them are those of :mod:`isthmus.development_tool`; ``isthmus.a2a`` encodes events for the wire.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias, get_args

from isthmus.development_tool import AgentThought, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.encoding.codec import JsonObject, from_json, to_json
from isthmus.errors import DecodeError
from isthmus.media import Media
from isthmus.record import record


class TaskState(StrEnum):
    """State of a task: those of A2A that Isthmus uses, by their wire names in version 0.3."""

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


class InternalEvent:
    """An event for the agent alone: no wire and no front shows it by itself."""

    __slots__ = ()


@record
class Prompt:
    """A user's message that starts or continues a task.

    ``text`` is its readable content. ``parts`` is the whole content of a message that is more than one text; ``media``
    are its parts that an agent has put into files. ``settings`` are the AgentSettings that came with the message, as
    received; ``metadata`` is the message's own. ``is_steering``: it is for the work under way, and the model reads it
    before its next message.
    """

    message_id: str
    text: str
    settings: JsonObject | None = None
    parts: "tuple[MessagePart, ...]" = ()
    media: tuple[Media, ...] = ()
    metadata: JsonObject | None = None
    is_steering: bool = False

    @property
    def content(self) -> "tuple[MessagePart, ...]":
        """Parts of the message as received."""
        return self.parts or (MessagePart(text=self.text),)


@record
class Command:
    """A slash command that starts a task of its own; ``path`` is e.g. ``("memory", "add")``, ``args`` as typed.

    ``settings`` are the AgentSettings that came with the request, as received. The model does not see the command,
    unless it adds a :class:`CommandPrompt`.
    """

    message_id: str
    path: tuple[str, ...]
    args: str = ""
    settings: JsonObject | None = None


@record
class CommandPrompt(InternalEvent):
    """A message to the model that a command writes for the user, e.g. the text of a custom command. Not shown.

    ``media`` is the content other than text. ``requested_file`` is the path of the file that the user asked for by the
    command, or empty.
    """

    text: str
    media: tuple[Media, ...] = ()
    requested_file: str = ""


@record
class AnsweredCall:
    """A call about which a user was asked, and the option that the user chose."""

    tool_call: ToolCall
    option_id: str


@record
class SubagentBegun(InternalEvent):
    """The task is the work of a subagent: a call of another task has begun it. Follows the prompt. Not shown.

    ``instructions`` is its system prompt. ``tools`` are the tools that it may use, by the names in its definition; None
    means all. ``refused_tools`` are left out. ``max_turns`` is the maximum number of model messages, None for the usual
    one. ``answered`` are the answers in the session of the other task, which count here too. ``checkpoints_of`` is the
    key of that session: its checkpoints and those of the subagent are one list.
    """

    name: str
    instructions: str
    parent_task_id: str
    parent_call_id: str
    tools: tuple[str, ...] | None = None
    refused_tools: tuple[str, ...] = ()
    max_turns: int | None = None
    answered: tuple[AnsweredCall, ...] = ()
    checkpoints_of: str | None = None


@record
class FolderIncluded(InternalEvent):
    """The agent works in this further folder for the rest of the session; ``path`` is absolute. Not shown by itself."""

    path: str


@record
class EditorContext(InternalEvent):
    """The editor's context as text for the model: its view at the prompt, later problems after edits. Not shown."""

    text: str


@record
class EnvironmentContext(InternalEvent):
    """The environment of the conversation as text for the model: date, system, git, files at the top. Not shown."""

    text: str


@record
class ReferredContent(InternalEvent):
    """The content to which a prompt refers, files or resources, as read when its turn began. Not shown.

    ``media`` is the content other than text.
    """

    text: str
    media: tuple[Media, ...] = ()


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
    (:func:`isthmus.tools.base.version_of`): the answer holds for that version. ``asked_in`` is the process in whose
    memory another call waits for the answer to this one; the question is lost if that process ends.
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

    ``was_streamed``: its text was sent before as TextContent of the same id, and is not sent again. The engine adds
    such a message for streamed text that no :class:`ModelReply` contains. ``is_answer``: it is the whole answer, and a
    client that waits for the answer receives this message instead of a task. ``replaces`` is as in
    :class:`TextContent`.
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
class ThoughtProgress(InternalEvent):
    """Subject of a thought that is not over: sent inside the process that runs the task, and not stored."""

    subject: str


@record
class ConfirmationAccepted:
    """An answer was accepted; ``answered_by`` names the surface or user that gave it."""

    confirmation: ToolCallConfirmation
    answered_by: str
    message_id: str = ""


@record
class RetryNotice:
    """A model request is tried again after ``delay`` seconds."""

    attempt: int
    attempts: int
    delay: float
    reason: str


@record
class ModelReply(InternalEvent):
    """A complete message of the model, as the provider must receive it again. Not shown to clients.

    ``message`` is the JSON form of :class:`isthmus.models.base.Message`; the counts are tokens.
    """

    message_id: str
    model: str
    message: JsonObject
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0


@record
class ModelUsed(InternalEvent):
    """A model was asked outside the conversation, e.g. for an MCP server. The counts but ``requests`` are tokens."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    requests: int = 1


@record
class ToolResultRecorded(InternalEvent):
    """The result of a call as the model receives it; the user sees that of the ToolCall. Not shown to clients.

    ``media`` is the content other than text.
    """

    tool_call_id: str
    content: str
    is_error: bool = False
    media: tuple[Media, ...] = ()


@record
class Compacted(InternalEvent):
    """All messages but the last ``kept`` were replaced by ``summary``. Not shown by itself.

    ``tokens_before`` and ``tokens_after`` estimate the conversation's size; the other counts are the cost of the
    summary.
    """

    summary: str
    kept: int
    tokens_before: int
    tokens_after: int
    input_tokens: int = 0
    output_tokens: int = 0


@record
class ResultsPruned(InternalEvent):
    """The long tool results in the first ``messages`` messages were replaced by notes. Not shown by itself.

    ``freed_tokens`` is an estimate.
    """

    messages: int
    freed_tokens: int


@record
class Checkpoint(InternalEvent):
    """The files that the call ``tool_call_id`` is about to edit were saved as ``checkpoint_id``. Not shown."""

    checkpoint_id: str
    tool_call_id: str


@record
class Restored(InternalEvent):
    """The conversation was reset to this checkpoint, before the call. Not shown by itself."""

    checkpoint_id: str


@record
class ChatResumed(InternalEvent):
    """The conversation was replaced by the one saved as ``name``. Not shown by itself.

    ``messages`` are those of the model, in the form of :mod:`isthmus.models.message`.
    """

    name: str
    messages: tuple[JsonObject, ...]


@record
class ModelChosen(InternalEvent):
    """The session continues with this model (as in ``--model``); None: the agent's default. Not shown by itself."""

    model: str | None = None


@record
class EffortChosen(InternalEvent):
    """The session continues with this effort: low, medium or high; None: the agent's. Not shown by itself."""

    effort: str | None = None


@record
class ToolsLoaded(InternalEvent):
    """The model receives the schemas of these tools of MCP servers, and of no others, from now on. Not shown.

    The first one of a session has no names: from there on tools are loaded on demand.
    """

    names: tuple[str, ...] = ()


@record
class LoopNotice(InternalEvent):
    """The model repeats itself, and ``text`` tells it so, in a message of the user's side. Not shown by itself."""

    text: str


@record
class AgentRecord(InternalEvent):
    """Data that an agent keeps across restarts of its process; a later record replaces it. Not shown."""

    data: JsonObject


AgentEvent: TypeAlias = (
    Prompt
    | Command
    | CommandPrompt
    | SubagentBegun
    | FolderIncluded
    | EditorContext
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
    | Compacted
    | ResultsPruned
    | Checkpoint
    | Restored
    | ChatResumed
    | ModelChosen
    | EffortChosen
    | ToolsLoaded
    | LoopNotice
    | AgentRecord
)
"""Any event of a task."""

EVENT_TYPES: Mapping[str, type[AgentEvent]] = {kind.__name__: kind for kind in get_args(AgentEvent)}


def event_to_json(event: AgentEvent) -> dict[str, Any]:
    """Return the JSON object of an event, its type name under ``type``."""
    return {"type": type(event).__name__, **to_json(event)}


def event_from_json(value: JsonObject) -> AgentEvent:
    """Return the event of a JSON object made by :func:`event_to_json`.

    Raises:
        DecodeError: an unknown type, or a field that does not fit.
    """
    kind = EVENT_TYPES.get(str(value.get("type")))
    if kind is None:
        raise DecodeError("AgentEvent.type", "one of " + ", ".join(EVENT_TYPES), value.get("type"))
    return from_json(kind, value)
