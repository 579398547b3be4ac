"""The start of a connection: versions, capabilities, and ways to log in."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeAlias

from isthmus.encoding.codec import JsonObject, WireName
from isthmus.record import record

PROTOCOL_VERSION = 1

Meta: TypeAlias = Annotated[JsonObject | None, WireName("_meta")]
"""Members of an object that only some peers know."""


@record
class Implementation:
    """Name and version of a program; ``title`` is for the user."""

    name: str
    version: str = ""
    title: str | None = None


@record
class Present:
    """A capability that has no members: it exists, or it does not."""


@record
class FileSystemCapabilities:
    """Methods of a client for files, unsaved ones included."""

    read_text_file: bool | None = None
    write_text_file: bool | None = None


@record
class ElicitationCapabilities:
    """Kinds of questions that a client can show."""

    form: Present | None = None
    url: Present | None = None


@record
class AuthCapabilities:
    """Ways of a client to log in: ``terminal`` starts the agent's own command in a terminal."""

    terminal: bool | None = None


@record
class ClientSessionCapabilities:
    """Updates that a client takes, besides those that every client knows."""

    compaction: Present | None = None


@record
class ClientCapabilities:
    """Abilities of a client; those that it does not name it lacks."""

    fs: FileSystemCapabilities | None = None
    terminal: bool | None = None
    auth: AuthCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None
    session: ClientSessionCapabilities | None = None
    meta: Meta = None


@record
class InitializeRequest:
    """``initialize``: the first request of a client."""

    METHOD: ClassVar = "initialize"
    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None


@record
class PromptCapabilities:
    """Content blocks that prompts may have, besides text and resource links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


@record
class McpCapabilities:
    """Transports to MCP servers of a client, besides standard streams."""

    http: bool = False
    sse: bool = False


@record
class SessionCapabilities:
    """Methods of an agent for sessions, besides new, prompt and cancel."""

    list: Present | None = None
    resume: Present | None = None
    close: Present | None = None
    delete: Present | None = None
    additional_directories: Present | None = None
    fork: Present | None = None


@record
class AgentAuthCapabilities:
    """Methods of an agent for its own login."""

    logout: Present | None = None


@record
class AgentCapabilities:
    """Abilities of an agent."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities | None = None
    mcp_capabilities: McpCapabilities | None = None
    session_capabilities: SessionCapabilities | None = None
    auth: AgentAuthCapabilities | None = None
    meta: Meta = None


@record
class TerminalAuth:
    """A login in a terminal: the client runs the agent's own command with these arguments and variables."""

    TAG: ClassVar = ("type", "terminal")
    id: str
    name: str
    description: str | None = None
    args: tuple[str, ...] | None = None
    env: Mapping[str, str] | None = None
    meta: Meta = None


@record
class AgentAuth:
    """A login that the agent carries out by itself."""

    TAG: ClassVar = ("type", None)
    id: str
    name: str
    description: str | None = None
    meta: Meta = None


@record
class InitializeResponse:
    """The agent's answer to ``initialize``."""

    protocol_version: int
    agent_capabilities: AgentCapabilities | None = None
    auth_methods: "tuple[TerminalAuth | AgentAuth, ...] | None" = None
    agent_info: Implementation | None = None


@record
class AuthenticateRequest:
    """``authenticate``: log in by the method of this id."""

    METHOD: ClassVar = "authenticate"
    method_id: str


@record
class LogoutRequest:
    """``logout``: forget the login."""

    METHOD: ClassVar = "logout"
