"""Sessions: the requests that begin, find, continue and end them, their options, and prompts."""

from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from isthmus.acp.v1.connection import Meta
from isthmus.acp.v1.content import ContentBlock
from isthmus.record import record


@record
class NamedValue:
    """An environment variable, or a header of HTTP."""

    name: str
    value: str


@record
class HttpMcpServer:
    """An MCP server of the client at a URL, by streamable HTTP."""

    TAG: ClassVar = ("type", "http")
    name: str
    url: str
    headers: tuple[NamedValue, ...] | None = None


@record
class SseServer:
    """An MCP server of the client at a URL, by the older transport with server-sent events."""

    TAG: ClassVar = ("type", "sse")
    name: str
    url: str
    headers: tuple[NamedValue, ...] | None = None


@record
class CommandServer:
    """An MCP server of the client that the agent starts."""

    TAG: ClassVar = ("type", None)
    name: str
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[NamedValue, ...] | None = None


McpServer: TypeAlias = HttpMcpServer | SseServer | CommandServer


@record
class NewSessionRequest:
    """``session/new``; ``cwd`` and ``additional_directories`` are absolute paths."""

    METHOD: ClassVar = "session/new"
    cwd: str
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None
    meta: Meta = None


@record
class LoadSessionRequest:
    """``session/load``: continue a session, and send all of it again."""

    METHOD: ClassVar = "session/load"
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


@record
class ResumeSessionRequest:
    """``session/resume``: continue a session without its past."""

    METHOD: ClassVar = "session/resume"
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


@record
class ForkSessionRequest:
    """``session/fork``: begin a session with the conversation of another one. Not part of the stable protocol yet."""

    METHOD: ClassVar = "session/fork"
    session_id: str
    cwd: str
    mcp_servers: tuple[McpServer, ...] | None = None
    additional_directories: tuple[str, ...] | None = None


@record
class ListSessionsRequest:
    """``session/list``; ``cwd`` limits the list to one folder."""

    METHOD: ClassVar = "session/list"
    cwd: str | None = None
    cursor: str | None = None


@record
class CloseSessionRequest:
    """``session/close``: stop the work of a session and let go of it."""

    METHOD: ClassVar = "session/close"
    session_id: str


@record
class DeleteSessionRequest:
    """``session/delete``: remove a session from the list."""

    METHOD: ClassVar = "session/delete"
    session_id: str


@record
class SetModeRequest:
    """``session/set_mode``."""

    METHOD: ClassVar = "session/set_mode"
    session_id: str
    mode_id: str


@record
class SetConfigOptionRequest:
    """``session/set_config_option``; ``value`` is a string, or a boolean for a switch."""

    METHOD: ClassVar = "session/set_config_option"
    session_id: str
    config_id: str
    value: Any


@record
class PromptRequest:
    """``session/prompt``: a message of the user; the response comes when the turn has ended."""

    METHOD: ClassVar = "session/prompt"
    session_id: str
    prompt: tuple[ContentBlock, ...]
    meta: Meta = None


@record
class CancelNotification:
    """``session/cancel``: stop the turn of a session."""

    METHOD: ClassVar = "session/cancel"
    session_id: str


@record
class SessionMode:
    """A mode that a session can be in."""

    id: str
    name: str
    description: str | None = None


@record
class SessionModeState:
    """The modes of a session, and the present one."""

    current_mode_id: str
    available_modes: tuple[SessionMode, ...]


@record
class ConfigValue:
    """A value of an option."""

    value: str
    name: str
    description: str | None = None


@record
class SelectOption:
    """An option of a session with one of several values; ``category`` is a hint such as mode or model."""

    TAG: ClassVar = ("type", "select")
    id: str
    name: str
    current_value: str
    options: tuple[Any, ...]
    """Values (:class:`ConfigValue`), or groups of them as JSON."""
    description: str | None = None
    category: str | None = None


@record
class OtherOption:
    """An option of a type that Isthmus does not use."""

    TAG: ClassVar = ("type", None)
    id: str = ""
    name: str = ""


ConfigOption: TypeAlias = SelectOption | OtherOption


@record
class NewSessionResponse:
    """The answer to ``session/new``."""

    session_id: str
    modes: SessionModeState | None = None
    config_options: tuple[ConfigOption, ...] | None = None
    meta: Meta = None


@record
class SessionStateResponse:
    """The answer to ``session/load`` and ``session/resume``."""

    modes: SessionModeState | None = None
    config_options: tuple[ConfigOption, ...] | None = None


@record
class ConfigOptionsResponse:
    """The answer to ``session/set_config_option``: all options."""

    config_options: tuple[ConfigOption, ...]


@record
class SessionInfo:
    """A session in a list; ``updated_at`` is a time in the form of ISO 8601."""

    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    additional_directories: tuple[str, ...] | None = None


@record
class ListSessionsResponse:
    """A page of the list of sessions."""

    sessions: tuple[SessionInfo, ...]
    next_cursor: str | None = None


class StopReason(StrEnum):
    """Reason for the end of a turn."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


@record
class TurnTokens:
    """Tokens of a turn, each in one kind alone; the total is their sum. It is not part of the stable protocol yet."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    thought_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


@record
class PromptResponse:
    """The answer to ``session/prompt``; ``usage`` is a :class:`TurnTokens`, as JSON where it comes from an agent."""

    stop_reason: str
    usage: Any = None
    meta: Meta = None
