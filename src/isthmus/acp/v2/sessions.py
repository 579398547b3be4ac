"""Sessions in version 2: one request continues them with or without their past, and options are their only settings."""

from typing import Any, ClassVar, TypeAlias

from isthmus.acp.front.wire import TurnError
from isthmus.acp.v1.sessions import CommandServer, ConfigValue, HttpMcpServer
from isthmus.acp.v1.updates import PlanEntry
from isthmus.record import record


@record
class StdioServer(CommandServer):
    """An MCP server of the client that the agent starts."""

    TAG: ClassVar = ("type", "stdio")


McpServerV2: TypeAlias = HttpMcpServer | StdioServer


@record
class NewSessionRequestV2:
    """``session/new``; ``cwd`` and ``additional_directories`` are absolute paths."""

    METHOD: ClassVar = "session/new"
    cwd: str
    mcp_servers: tuple[McpServerV2, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


@record
class ReplayFromStart:
    """Everything is sent again."""

    TAG: ClassVar = ("type", "start")


@record
class UnknownReplay:
    """A place to begin that Isthmus does not know."""

    TAG: ClassVar = ("type", None)
    type: str = ""


@record
class ResumeSessionRequestV2:
    """``session/resume``: continue a session; without ``replay_from`` its past is not sent."""

    METHOD: ClassVar = "session/resume"
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServerV2, ...] | None = None
    additional_directories: tuple[str, ...] | None = None
    replay_from: ReplayFromStart | UnknownReplay | None = None


@record
class SelectOptionV2:
    """An option of a session with one of several values; ``category`` is a hint such as mode or model."""

    TAG: ClassVar = ("type", "select")
    config_id: str
    name: str
    current_value: str
    options: tuple[ConfigValue, ...]
    description: str | None = None
    category: str | None = None


@record
class SessionResponse:
    """The answer to ``session/new``, with an id, to ``session/resume`` and to ``session/set_config_option``."""

    session_id: str | None
    config_options: tuple[SelectOptionV2, ...]


@record
class PromptAcknowledgement:
    """The answer to ``session/prompt``: it has become this message, and its turn has begun."""

    message_id: str


@record
class ConfigOptionsUpdateV2:
    """All options of the session."""

    TAG: ClassVar = ("sessionUpdate", "config_option_update")
    config_options: tuple[SelectOptionV2, ...]


@record
class TextInput:
    """The arguments of a slash command, as a hint for the user."""

    TAG: ClassVar = ("type", "text")
    hint: str


@record
class AvailableCommandV2:
    """A slash command; the user types a slash and its name."""

    TAG: ClassVar = ("type", "command")
    name: str
    description: str
    input: TextInput | None = None


@record
class CommandsUpdateV2:
    """All slash commands of the session."""

    TAG: ClassVar = ("sessionUpdate", "available_commands_update")
    available_commands: tuple[AvailableCommandV2, ...]


@record
class PlanItems:
    """A plan as entries; a later one with the same id replaces it."""

    TAG: ClassVar = ("type", "items")
    plan_id: str
    entries: tuple[PlanEntry, ...]


@record
class PlanUpdateV2:
    """A plan of the agent."""

    TAG: ClassVar = ("sessionUpdate", "plan_update")
    plan: PlanItems


@record
class StateUpdate:
    """State of the work in a session; an idle one says why the work has ended, and which error ended it."""

    TAG: ClassVar = ("sessionUpdate", "state_update")
    state: str
    stop_reason: str | None = None
    error: TurnError | None = None


@record
class MessageUpdate:
    """A whole message, which replaces what the client has of it; without content the message is void."""

    message_id: str
    content: tuple[Any, ...]


@record
class UserMessageUpdate(MessageUpdate):
    """A whole message of the user."""

    TAG: ClassVar = ("sessionUpdate", "user_message")


@record
class AgentMessageUpdate(MessageUpdate):
    """A whole message of the agent."""

    TAG: ClassVar = ("sessionUpdate", "agent_message")
