"""``session/update``: the events of a session, and the tool calls in them."""

from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from isthmus.acp.v1.connection import Meta
from isthmus.acp.v1.content import ContentBlock
from isthmus.acp.v1.sessions import ConfigOption
from isthmus.record import record


class CallKind(StrEnum):
    """Kind of a tool, by which clients choose a symbol."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


class AcpCallStatus(StrEnum):
    """State of a tool call. Version 1 has none for a call that was refused or cancelled: it failed."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@record
class BlockContent:
    """A content block of a tool call."""

    TAG: ClassVar = ("type", "content")
    content: ContentBlock


@record
class DiffContent:
    """A change of a file at an absolute path; ``old_text`` is None for a new file."""

    TAG: ClassVar = ("type", "diff")
    path: str
    new_text: str
    old_text: str | None = None
    meta: Meta = None


@record
class TerminalContent:
    """The output of a terminal of the client."""

    TAG: ClassVar = ("type", "terminal")
    terminal_id: str


@record
class UnknownContent:
    """Content of a type that Isthmus does not know."""

    TAG: ClassVar = ("type", None)
    type: str = ""


CallContent: TypeAlias = BlockContent | DiffContent | TerminalContent | UnknownContent


@record
class Location:
    """A file that a call reads or changes; ``line`` is 1-based."""

    path: str
    line: int | None = None


@record
class ToolCallState:
    """A tool call as far as it is stated; members that are None are unchanged."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: tuple[CallContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: Any = None
    raw_output: Any = None
    name: str | None = None
    """Name of the tool, if the agent states it."""
    meta: Meta = None


@record
class ToolCallStarted(ToolCallState):
    """A new tool call."""

    TAG: ClassVar = ("sessionUpdate", "tool_call")


@record
class ToolCallChanged(ToolCallState):
    """A change of a tool call."""

    TAG: ClassVar = ("sessionUpdate", "tool_call_update")


@record
class UserMessageChunk:
    """More of a message of the user."""

    TAG: ClassVar = ("sessionUpdate", "user_message_chunk")
    content: ContentBlock
    message_id: str | None = None


@record
class AgentMessageChunk:
    """More of a text of the agent."""

    TAG: ClassVar = ("sessionUpdate", "agent_message_chunk")
    content: ContentBlock
    message_id: str | None = None
    meta: Meta = None


@record
class AgentThoughtChunk:
    """More of a thought of the agent."""

    TAG: ClassVar = ("sessionUpdate", "agent_thought_chunk")
    content: ContentBlock
    message_id: str | None = None


@record
class PlanEntry:
    """A step of a plan."""

    content: str
    priority: str = "medium"
    status: str = "pending"


@record
class PlanUpdate:
    """The whole plan of the agent."""

    TAG: ClassVar = ("sessionUpdate", "plan")
    entries: tuple[PlanEntry, ...]


@record
class CommandInput:
    """The arguments of a slash command, as a hint for the user."""

    hint: str


@record
class AvailableCommand:
    """A slash command; the user types a slash and its name."""

    name: str
    description: str
    input: CommandInput | None = None


@record
class CommandsUpdate:
    """All slash commands of the session."""

    TAG: ClassVar = ("sessionUpdate", "available_commands_update")
    available_commands: tuple[AvailableCommand, ...]


@record
class ModeUpdate:
    """The present mode."""

    TAG: ClassVar = ("sessionUpdate", "current_mode_update")
    current_mode_id: str


@record
class ConfigOptionsUpdate:
    """All options of the session."""

    TAG: ClassVar = ("sessionUpdate", "config_option_update")
    config_options: tuple[ConfigOption, ...]


@record
class SessionInfoUpdate:
    """The title of the session, and the time of its last change in the form of ISO 8601."""

    TAG: ClassVar = ("sessionUpdate", "session_info_update")
    title: str | None = None
    updated_at: str | None = None


@record
class UsageUpdate:
    """Tokens of the conversation, and of the model's window; ``cost`` is :class:`~isthmus.session_status.Cost` as JSON.

    It is the whole session's; None: not known.
    """

    TAG: ClassVar = ("sessionUpdate", "usage_update")
    used: int
    size: int
    cost: Any = None


@record
class CompactionUpdate:
    """The older part of the conversation became a summary; ``status`` is completed for one that has ended."""

    TAG: ClassVar = ("sessionUpdate", "compaction_update")
    compaction_id: str
    status: str
    summary: tuple[ContentBlock, ...] | None = None


@record
class UnknownUpdate:
    """An update of a kind that Isthmus does not know."""

    TAG: ClassVar = ("sessionUpdate", None)


SessionUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStarted
    | ToolCallChanged
    | PlanUpdate
    | CommandsUpdate
    | ModeUpdate
    | ConfigOptionsUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | CompactionUpdate
    | UnknownUpdate
)


@record
class SessionNotification:
    """``session/update``."""

    METHOD: ClassVar = "session/update"
    session_id: str
    update: SessionUpdate
