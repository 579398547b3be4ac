"""Sessions in version 2: one request continues them with or without their past, and options are their only settings."""

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from isthmus.acp.front.wire import TurnError
from isthmus.acp.v1.sessions import CommandServer, ConfigValue, HttpMcpServer
from isthmus.acp.v1.updates import PlanEntry


@dataclass(frozen=True, slots=True)
class StdioServer(CommandServer):
    """An MCP server of the client that the agent starts."""

    TAG: ClassVar = ("type", "stdio")


McpServerV2: TypeAlias = HttpMcpServer | StdioServer


@dataclass(frozen=True, slots=True)
class NewSessionRequestV2:
    """``session/new``; ``cwd`` and ``additional_directories`` are absolute paths."""

    METHOD: ClassVar = "session/new"
    cwd: str
    mcp_servers: tuple[McpServerV2, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReplayFromStart:
    """Everything is sent again."""

    TAG: ClassVar = ("type", "start")


@dataclass(frozen=True, slots=True)
class UnknownReplay:
    """A place to begin that Isthmus does not know."""

    TAG: ClassVar = ("type", None)
    type: str = ""


@dataclass(frozen=True, slots=True)
class ResumeSessionRequestV2:
    """``session/resume``: continue a session; without ``replay_from`` its past is not sent."""

    METHOD: ClassVar = "session/resume"
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServerV2, ...] | None = None
    additional_directories: tuple[str, ...] | None = None
    replay_from: ReplayFromStart | UnknownReplay | None = None


@dataclass(frozen=True, slots=True)
class SelectOptionV2:
    """An option of a session with one of several values; ``category`` is a hint such as mode or model."""

    TAG: ClassVar = ("type", "select")
    config_id: str
    name: str
    current_value: str
    options: tuple[ConfigValue, ...]
    description: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class SessionResponse:
    """The answer to ``session/new``, with an id, to ``session/resume`` and to ``session/set_config_option``."""

    session_id: str | None
    config_options: tuple[SelectOptionV2, ...]


@dataclass(frozen=True, slots=True)
class PromptAcknowledgement:
    """The answer to ``session/prompt``: it has become this message, and its turn has begun."""

    message_id: str


@dataclass(frozen=True, slots=True)
class ConfigOptionsUpdateV2:
    """All options of the session."""

    TAG: ClassVar = ("sessionUpdate", "config_option_update")
    config_options: tuple[SelectOptionV2, ...]


@dataclass(frozen=True, slots=True)
class TextInput:
    """The arguments of a slash command, as a hint for the user."""

    TAG: ClassVar = ("type", "text")
    hint: str


@dataclass(frozen=True, slots=True)
class AvailableCommandV2:
    """A slash command; the user types a slash and its name."""

    TAG: ClassVar = ("type", "command")
    name: str
    description: str
    input: TextInput | None = None


@dataclass(frozen=True, slots=True)
class CommandsUpdateV2:
    """All slash commands of the session."""

    TAG: ClassVar = ("sessionUpdate", "available_commands_update")
    available_commands: tuple[AvailableCommandV2, ...]


@dataclass(frozen=True, slots=True)
class PlanItems:
    """A plan as entries; a later one with the same id replaces it."""

    TAG: ClassVar = ("type", "items")
    plan_id: str
    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class PlanUpdateV2:
    """A plan of the agent."""

    TAG: ClassVar = ("sessionUpdate", "plan_update")
    plan: PlanItems


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """State of the work in a session; an idle one says why the work has ended, and which error ended it."""

    TAG: ClassVar = ("sessionUpdate", "state_update")
    state: str
    stop_reason: str | None = None
    error: TurnError | None = None


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """A whole message, which replaces what the client has of it; without content the message is void."""

    message_id: str
    content: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class UserMessageUpdate(MessageUpdate):
    """A whole message of the user."""

    TAG: ClassVar = ("sessionUpdate", "user_message")


@dataclass(frozen=True, slots=True)
class AgentMessageUpdate(MessageUpdate):
    """A whole message of the agent."""

    TAG: ClassVar = ("sessionUpdate", "agent_message")
