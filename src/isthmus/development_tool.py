"""Messages and enums of the development-tool extension, sections 3.2 and 3.3 of its document.

The numbers in the annotations are the document's protobuf field numbers. ``development_tool.proto`` has the same
messages for other languages, and a test compares both. ``isthmus.a2a`` encodes them for the wire.
"""

from dataclasses import fields, replace
from enum import Enum
from typing import Annotated, TypeAlias, cast

from isthmus.encoding.codec import JsonObject, camel, from_json, require_at_most_one
from isthmus.record import record

EXTENSION_URI = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md"
"""The extension's URI as in the sample agent card of its document; the key of our objects in metadata."""


# --- Initialization and configuration -------------------------------------------------------------------------------


@record
class McpServerSettings:
    """An MCP server for a session: one of the agent's own configuration by ``name``, or the client's own.

    The client's own is at a ``url``, with ``headers`` for every request, e.g. its token; or it is a ``command`` with
    ``args`` and ``env``, if the agent runs commands for this client. The name ``*`` stands for all configured servers.
    """

    name: Annotated[str, 1]
    url: Annotated[str | None, 2] = None
    headers: Annotated[JsonObject | None, 3] = None
    command: Annotated[str | None, 4] = None
    args: Annotated[tuple[str, ...], 5] = ()
    env: Annotated[JsonObject | None, 6] = None

    @property
    def is_own(self) -> bool:
        """Whether it is the client's own."""
        return self.url is not None or self.command is not None


@record
class AgentSettings:
    """Configuration of a session, sent with its first message. ``workspace_path`` is absolute.

    The other settings are our own, which the document permits; their field numbers are far from its own. For each that
    is absent or empty the agent decides. ``mcp_servers``: only these are used. ``allowed_tools`` run without a
    question, in the form of ``tools.allowed`` in the settings files. ``model``: as in the option ``--model``.
    ``approval_mode``: default, auto_edit, plan or yolo. ``context_files``: names of the files that instruct the agent,
    instead of GEMINI.md, AGENTS.md and CLAUDE.md. ``effort``: how much the model thinks: minimal to max, or default.
    ``additional_directories``: absolute paths of further folders in which the agent works.
    """

    workspace_path: Annotated[str, 1]
    mcp_servers: Annotated[tuple[McpServerSettings, ...], 101] = ()
    allowed_tools: Annotated[tuple[str, ...], 102] = ()
    model: Annotated[str | None, 103] = None
    approval_mode: Annotated[str | None, 104] = None
    context_files: Annotated[tuple[str, ...], 105] = ()
    effort: Annotated[str | None, 106] = None
    additional_directories: Annotated[tuple[str, ...], 107] = ()


ADDITIONAL_DIRECTORIES = "additional_directories"
"""Key of the further folders in AgentSettings."""


def decode_agent_settings(value: JsonObject, path: str = "AgentSettings") -> AgentSettings:
    """Decode the AgentSettings of a client; an MCP server may also be given by its name alone.

    No servers may also be an empty object, as in clients whose settings list servers by name, or null.

    Raises:
        DecodeError: a value does not fit.
    """
    workspace = value.get("workspace_path")
    if len(value) == 1 and isinstance(workspace, str):
        return AgentSettings(workspace)  # the usual case, decoded several times per task
    for name in ("mcp_servers", camel("mcp_servers")):
        servers = value.get(name)
        if isinstance(servers, list):
            named = [{"name": item} if isinstance(item, str) else item for item in cast("list[object]", servers)]
            value = {**value, name: named}
        elif name in value and servers in ({}, None):
            value = {**value, name: []}
    return from_json(AgentSettings, value, path)


def merge_agent_settings(before: AgentSettings | None, value: JsonObject) -> AgentSettings:
    """Return the settings of a session after a message with ``value``, whose fields replace those before.

    An empty field leaves the decision to the agent again.

    Raises:
        DecodeError: a value does not fit.
    """
    received = decode_agent_settings(value)
    if before is None:
        return received
    named = [item.name for item in fields(AgentSettings) if item.name in value or camel(item.name) in value]
    return replace(before, **{name: getattr(received, name) for name in named})


# --- Tool calls -----------------------------------------------------------------------------------------------------


class ToolCallStatus(Enum):
    """State of a tool call: PENDING -> EXECUTING -> SUCCEEDED, FAILED or CANCELLED."""

    STATUS_UNSPECIFIED = 0
    PENDING = 1
    EXECUTING = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5

    @property
    def is_final(self) -> bool:
        """Whether no further update of the call follows."""
        return self in (ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.CANCELLED)


@record
class FileDiff:
    """A change of one file. ``file_path`` is absolute; ``old_content`` is None if the file does not exist yet."""

    file_name: Annotated[str, 1]
    file_path: Annotated[str, 2]
    new_content: Annotated[str, 4]
    old_content: Annotated[str | None, 3] = None
    formatted_diff: Annotated[str | None, 5] = None


@record
class ToolOutput:
    """The output of a successful tool; one of the first three fields is set.

    ``exit_code``, our own, is the exit code of a failed command: from 1 on, or the negative number of a signal.
    """

    text: Annotated[str | None, 1] = None
    diff: Annotated[FileDiff | None, 2] = None
    structured_data: Annotated[JsonObject | None, 3] = None
    exit_code: Annotated[int | None, 101] = None

    def __post_init__(self) -> None:
        require_at_most_one(self, "result", "text", "diff", "structured_data")


@record
class ChangedLines:
    """Numbers of lines that were added to a file and removed from it; our own. ``file_path`` is absolute."""

    file_path: Annotated[str, 1]
    added: Annotated[int, 2] = 0
    removed: Annotated[int, 3] = 0


@record
class ErrorDetails:
    """The failure of a tool: ``message`` for the user, ``type`` a category such as ``read_content_failure``."""

    message: Annotated[str, 1]
    type: Annotated[str | None, 2] = None
    status_code: Annotated[int | None, 3] = None


@record
class ConfirmationOption:
    """A choice of the user, e.g. ``proceed_once`` "Allow once".

    ``kind``, our own, is set where the id does not tell: allow_once, allow_always, reject_once or reject_always.
    ``covers``, our own, names what a lasting answer covers, such as a tool, a server or the first words of commands.
    """

    id: Annotated[str, 1]
    name: Annotated[str, 2]
    description: Annotated[str | None, 3] = None
    kind: Annotated[str | None, 101] = None
    covers: Annotated[str | None, 102] = None


@record
class CommandTrial:
    """Effect of a command that was tried in a throw-away copy of its folder; our own.

    ``id`` names the changes that a yes applies; empty: nothing was kept, and a yes runs the command. ``changes`` is the
    text of all changes that a user is asked about, or the reason why none was kept. ``files`` are the paths of these.
    """

    id: Annotated[str, 1]
    changes: Annotated[str, 2] = ""
    files: Annotated[tuple[str, ...], 3] = ()


@record
class ExecuteDetails:
    """A shell command that wants to run. ``trial``, our own, is what it did in a copy."""

    command: Annotated[str, 1]
    working_directory: Annotated[str | None, 2] = None
    trial: Annotated[CommandTrial | None, 101] = None


@record
class McpDetails:
    """A tool of an MCP server that wants to run."""

    server_name: Annotated[str, 1]
    tool_name: Annotated[str, 2]


@record
class GenericDetails:
    """Any other action that needs permission."""

    description: Annotated[str, 1]


ConfirmationDetails: TypeAlias = ExecuteDetails | FileDiff | McpDetails | GenericDetails


@record
class ConfirmationRequest:
    """A question to the user for permission; one kind of details is set.

    ``words_option``, our own, is the id with which a user answers in words instead of by one of the options. It is not
    one of these; the words are the new content of the answer. ``wants`` and ``risks``, our own, are the last sentence
    that the agent said before the call, and what is known to make the call risky (`isthmus.questions.CallRisk`).
    """

    options: Annotated[tuple[ConfirmationOption, ...], 1]
    execute_details: Annotated[ExecuteDetails | None, 2] = None
    file_edit_details: Annotated[FileDiff | None, 3] = None
    mcp_details: Annotated[McpDetails | None, 4] = None
    generic_details: Annotated[GenericDetails | None, 5] = None
    words_option: Annotated[str | None, 101] = None
    wants: Annotated[str | None, 102] = None
    risks: Annotated[tuple[str, ...] | None, 103] = None

    def __post_init__(self) -> None:
        require_at_most_one(self, "details", "execute_details", "file_edit_details", "mcp_details", "generic_details")

    @property
    def details(self) -> ConfirmationDetails | None:
        """The one kind of details that is set."""
        return self.execute_details or self.file_edit_details or self.mcp_details or self.generic_details

    @classmethod
    def of(cls, options: tuple[ConfirmationOption, ...], details: ConfirmationDetails) -> "ConfirmationRequest":
        """Return the request with the details in the field of their kind."""
        match details:
            case ExecuteDetails():
                return cls(options, execute_details=details)
            case FileDiff():
                return cls(options, file_edit_details=details)
            case McpDetails():
                return cls(options, mcp_details=details)
            case GenericDetails():
                return cls(options, generic_details=details)


@record
class ToolCall:
    """One tool call, sent whole on every update.

    ``live_content`` is the whole output so far, replaced on each update. ``confirmation_request`` is set only while
    the call is PENDING and waits for a user. ``changed_files``, our own, are the files that a subagent has changed for
    the call.
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
    changed_files: Annotated[tuple[ChangedLines, ...] | None, 101] = None

    def __post_init__(self) -> None:
        require_at_most_one(self, "result", "output", "error")


# --- Thoughts and event metadata ------------------------------------------------------------------------------------


@record
class AgentThought:
    """A thought of the model: a short subject and its elaboration."""

    subject: Annotated[str, 1]
    description: Annotated[str, 2]


class DevelopmentToolEventKind(Enum):
    """Kind of content of a TaskStatusUpdateEvent."""

    DEVELOPMENT_TOOL_EVENT_KIND_UNSPECIFIED = 0
    TOOL_CALL_CONFIRMATION = 1
    TOOL_CALL_UPDATE = 2
    TEXT_CONTENT = 3
    STATE_CHANGE = 4
    THOUGHT = 5


@record
class DevelopmentToolEvent:
    """The metadata of a TaskStatusUpdateEvent, under the extension's URI."""

    kind: Annotated[DevelopmentToolEventKind, 1]
    model: Annotated[str | None, 2] = None
    user_tier: Annotated[str | None, 3] = None
    error: Annotated[str | None, 4] = None


# --- Client to agent ------------------------------------------------------------------------------------------------


@record
class ModifiedFileDetails:
    """The content of a file after the user's own edits of a proposal."""

    new_content: Annotated[str, 1]


@record
class ToolCallConfirmation:
    """The user's answer to a ConfirmationRequest; ``file_details`` is the oneof ``modified_details``."""

    tool_call_id: Annotated[str, 1]
    selected_option_id: Annotated[str, 2]
    file_details: Annotated[ModifiedFileDetails | None, 3] = None


# --- Slash commands (section 3.3) -----------------------------------------------------------------------------------


@record
class SlashCommandArgument:
    """An argument of a slash command."""

    name: Annotated[str, 1]
    description: Annotated[str, 2]
    is_required: Annotated[bool, 3] = False


@record
class SlashCommand:
    """A slash command, which can contain subcommands."""

    name: Annotated[str, 1]
    description: Annotated[str, 2]
    arguments: Annotated[tuple[SlashCommandArgument, ...], 3] = ()
    sub_commands: Annotated["tuple[SlashCommand, ...]", 4] = ()


@record
class GetAllSlashCommandsResponse:
    """The answer of ``commands/get``."""

    commands: Annotated[tuple[SlashCommand, ...], 1] = ()


@record
class ExecuteSlashCommandRequest:
    """The parameters of ``command/execute``: e.g. ``["memory", "add"]`` and its arguments as one string."""

    command_path: Annotated[tuple[str, ...], 1]
    args: Annotated[str, 2] = ""


class CommandExecutionStatus(Enum):
    """Outcome of starting a slash command."""

    COMMAND_EXECUTION_STATUS_UNSPECIFIED = 0
    STARTED = 1
    FAILED_TO_START = 2
    AWAITING_SHELL_CONFIRMATION = 3
    AWAITING_ACTION_CONFIRMATION = 4


@record
class ExecuteSlashCommandResponse:
    """The immediate answer of ``command/execute``; ``execution_id`` is a task id."""

    execution_id: Annotated[str, 1]
    status: Annotated[CommandExecutionStatus, 2]
    message: Annotated[str | None, 3] = None
