"""The vocabulary everybody speaks: the messages and enums of spec 2, sections 3.2 and 3.3, and ``AgentEvent``.

The numbers in the annotations are the protobuf field numbers of the document; ``development_tool.proto`` is the same
text for other languages, and a test holds both together. ``AgentEvent`` is the closed union of what leaves the agent,
one row of the journal each. Deliberately not here: how any of this goes over a wire (``isthmus.a2a``), and what is
done with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, Any, TypeAlias, get_args

from isthmus.codec import from_json, require_at_most_one, to_json
from isthmus.errors import DecodeError

JsonObject: TypeAlias = Mapping[str, Any]


# --- Initialization and configuration -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Configuration of a session, sent with its first message. ``workspace_path`` is absolute."""

    workspace_path: Annotated[str, 1]


# --- Tool calls -----------------------------------------------------------------------------------------------------


class ToolCallStatus(Enum):
    """Where a tool call is in its life: PENDING -> EXECUTING -> SUCCEEDED, FAILED or CANCELLED."""

    STATUS_UNSPECIFIED = 0
    PENDING = 1
    EXECUTING = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5

    @property
    def is_final(self) -> bool:
        """No further update of the call follows."""
        return self in (ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A change of one file. ``file_path`` is absolute; ``old_content`` is None when the file does not exist yet."""

    file_name: Annotated[str, 1]
    file_path: Annotated[str, 2]
    new_content: Annotated[str, 4]
    old_content: Annotated[str | None, 3] = None
    formatted_diff: Annotated[str | None, 5] = None


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool that succeeded; one of the three fields is set."""

    text: Annotated[str | None, 1] = None
    diff: Annotated[FileDiff | None, 2] = None
    structured_data: Annotated[JsonObject | None, 3] = None

    def __post_init__(self) -> None:
        require_at_most_one(self, "result", "text", "diff", "structured_data")


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """Why a tool failed: ``message`` for the user, ``type`` a category such as ``read_content_failure``."""

    message: Annotated[str, 1]
    type: Annotated[str | None, 2] = None
    status_code: Annotated[int | None, 3] = None


@dataclass(frozen=True, slots=True)
class ConfirmationOption:
    """A choice of the user, e.g. ``proceed_once`` "Allow once"."""

    id: Annotated[str, 1]
    name: Annotated[str, 2]
    description: Annotated[str | None, 3] = None


@dataclass(frozen=True, slots=True)
class ExecuteDetails:
    """A shell command that wants to run."""

    command: Annotated[str, 1]
    working_directory: Annotated[str | None, 2] = None


@dataclass(frozen=True, slots=True)
class McpDetails:
    """A tool of an MCP server that wants to run."""

    server_name: Annotated[str, 1]
    tool_name: Annotated[str, 2]


@dataclass(frozen=True, slots=True)
class GenericDetails:
    """Any other action that needs permission."""

    description: Annotated[str, 1]


ConfirmationDetails: TypeAlias = ExecuteDetails | FileDiff | McpDetails | GenericDetails


@dataclass(frozen=True, slots=True)
class ConfirmationRequest:
    """Asks the user for permission; one kind of details is set."""

    options: Annotated[tuple[ConfirmationOption, ...], 1]
    execute_details: Annotated[ExecuteDetails | None, 2] = None
    file_edit_details: Annotated[FileDiff | None, 3] = None
    mcp_details: Annotated[McpDetails | None, 4] = None
    generic_details: Annotated[GenericDetails | None, 5] = None

    def __post_init__(self) -> None:
        require_at_most_one(self, "details", "execute_details", "file_edit_details", "mcp_details", "generic_details")

    @property
    def details(self) -> ConfirmationDetails | None:
        """The member of the oneof that is set."""
        return self.execute_details or self.file_edit_details or self.mcp_details or self.generic_details


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call, sent whole on every update.

    ``live_content`` is the whole output so far, replaced on each update. ``confirmation_request`` is set only while
    the call is PENDING and waits for a person.
    """

    tool_call_id: Annotated[str, 1]
    status: Annotated[ToolCallStatus, 2]
    tool_name: Annotated[str, 3]
    input_parameters: Annotated[JsonObject, 5]
    description: Annotated[str | None, 4] = None
    live_content: Annotated[str | None, 6] = None
    output: Annotated[ToolOutput | None, 7] = None
    error: Annotated[ErrorDetails | None, 8] = None
    confirmation_request: Annotated[ConfirmationRequest | None, 9] = None

    def __post_init__(self) -> None:
        require_at_most_one(self, "result", "output", "error")


# --- Thoughts and event metadata ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentThought:
    """A thought of the model: a short subject and its elaboration."""

    subject: Annotated[str, 1]
    description: Annotated[str, 2]


class DevelopmentToolEventKind(Enum):
    """What a TaskStatusUpdateEvent carries."""

    DEVELOPMENT_TOOL_EVENT_KIND_UNSPECIFIED = 0
    TOOL_CALL_CONFIRMATION = 1
    TOOL_CALL_UPDATE = 2
    TEXT_CONTENT = 3
    STATE_CHANGE = 4
    THOUGHT = 5


@dataclass(frozen=True, slots=True)
class DevelopmentToolEvent:
    """The metadata of a TaskStatusUpdateEvent, under the extension's URI."""

    kind: Annotated[DevelopmentToolEventKind, 1]
    model: Annotated[str | None, 2] = None
    user_tier: Annotated[str | None, 3] = None
    error: Annotated[str | None, 4] = None


# --- Client to agent ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModifiedFileDetails:
    """The content of a file after the user's own edits of a proposal."""

    new_content: Annotated[str, 1]


@dataclass(frozen=True, slots=True)
class ToolCallConfirmation:
    """The user's answer to a ConfirmationRequest; ``file_details`` is the oneof ``modified_details``."""

    tool_call_id: Annotated[str, 1]
    selected_option_id: Annotated[str, 2]
    file_details: Annotated[ModifiedFileDetails | None, 3] = None


# --- Slash commands (section 3.3) -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlashCommandArgument:
    """An argument of a slash command."""

    name: Annotated[str, 1]
    description: Annotated[str, 2]
    is_required: Annotated[bool, 3] = False


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A slash command, which can contain subcommands."""

    name: Annotated[str, 1]
    description: Annotated[str, 2]
    arguments: Annotated[tuple[SlashCommandArgument, ...], 3] = ()
    sub_commands: Annotated["tuple[SlashCommand, ...]", 4] = ()


@dataclass(frozen=True, slots=True)
class GetAllSlashCommandsResponse:
    """The answer of ``commands/get``."""

    commands: Annotated[tuple[SlashCommand, ...], 1] = ()


@dataclass(frozen=True, slots=True)
class ExecuteSlashCommandRequest:
    """The parameters of ``command/execute``: e.g. ``["memory", "add"]`` and its arguments as one string."""

    command_path: Annotated[tuple[str, ...], 1]
    args: Annotated[str, 2] = ""


class CommandExecutionStatus(Enum):
    """How the execution of a slash command begins."""

    COMMAND_EXECUTION_STATUS_UNSPECIFIED = 0
    STARTED = 1
    FAILED_TO_START = 2
    AWAITING_SHELL_CONFIRMATION = 3
    AWAITING_ACTION_CONFIRMATION = 4


@dataclass(frozen=True, slots=True)
class ExecuteSlashCommandResponse:
    """The immediate answer of ``command/execute``; ``execution_id`` is a task id."""

    execution_id: Annotated[str, 1]
    status: Annotated[CommandExecutionStatus, 2]
    message: Annotated[str | None, 3] = None


# --- What leaves the agent ------------------------------------------------------------------------------------------


class TaskState(StrEnum):
    """The states of an A2A task that Isthmus uses, by their wire names in version 0.3."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        """The task's work has ended, well or not."""
        return self in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED)

    @property
    def ends_stream(self) -> bool:
        """A stream ends here: the work has ended, or a person is asked."""
        return self.is_terminal or self is TaskState.INPUT_REQUIRED


@dataclass(frozen=True, slots=True)
class Prompt:
    """A person's message, as it starts or continues a task.

    ``settings`` are the AgentSettings that came with the message, as received.
    """

    message_id: str
    text: str
    settings: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class EditorContext:
    """What the person's editor showed when a prompt was taken up, as text for the model. Not shown to clients."""

    text: str


@dataclass(frozen=True, slots=True)
class StateChange:
    """The task entered ``state``. ``error`` says why it failed; ``reason`` is a machine-readable word for it."""

    state: TaskState
    error: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallUpdate:
    """A tool call changed; the whole call."""

    tool_call: ToolCall

    @property
    def is_ephemeral(self) -> bool:
        """Progress that the next update replaces: sent, but not kept."""
        return self.tool_call.status is ToolCallStatus.EXECUTING and self.tool_call.live_content is not None


@dataclass(frozen=True, slots=True)
class TextContent:
    """More of the text ``message_id``: an increment, never a repetition."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A whole thought."""

    thought: AgentThought


@dataclass(frozen=True, slots=True)
class ConfirmationAccepted:
    """An answer was taken; ``answered_by`` names the surface or person it came from."""

    confirmation: ToolCallConfirmation
    answered_by: str


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """A model request is tried again after ``delay`` seconds."""

    attempt: int
    attempts: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete message of the model, kept as the provider needs to see it again. Not shown to clients.

    ``message`` is the JSON form of :class:`isthmus.models.base.Message`; the counts are tokens.
    """

    message_id: str
    model: str
    message: JsonObject
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ToolResultRecorded:
    """What the model is told about a call; the user sees the ToolCall's own result. Not shown to clients."""

    tool_call_id: str
    content: str
    is_error: bool = False


AgentEvent: TypeAlias = (
    Prompt
    | EditorContext
    | StateChange
    | ToolCallUpdate
    | TextContent
    | Thought
    | ConfirmationAccepted
    | RetryNotice
    | ModelReply
    | ToolResultRecorded
)
"""Everything that can happen to a task, in the order in which it happened."""

EVENT_TYPES: Mapping[str, type[AgentEvent]] = {kind.__name__: kind for kind in get_args(AgentEvent)}


def event_to_json(event: AgentEvent) -> dict[str, Any]:
    """The JSON object of an event, its type name under ``type``."""
    return {"type": type(event).__name__, **to_json(event)}


def event_from_json(value: JsonObject) -> AgentEvent:
    """The event of a JSON object made by :func:`event_to_json`.

    Raises:
        DecodeError: an unknown type, or a field that does not fit.
    """
    kind = EVENT_TYPES.get(str(value.get("type")))
    if kind is None:
        raise DecodeError("AgentEvent.type", "one of " + ", ".join(EVENT_TYPES), value.get("type"))
    return from_json(kind, value)
