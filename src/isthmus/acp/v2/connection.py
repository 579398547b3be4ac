"""The start of a connection in version 2: its capabilities are objects, and have the same names on both sides."""

from typing import ClassVar

from isthmus.acp.v1.connection import ElicitationCapabilities, Implementation, Meta, Present
from isthmus.acp.v1.sessions import NamedValue
from isthmus.record import record


@record
class AuthCapabilitiesV2:
    """Ways of a client to log in: ``terminal`` starts the agent's own command in a terminal."""

    terminal: Present | None = None


@record
class ClientCapabilitiesV2:
    """Abilities of a client; it offers neither files nor terminals."""

    auth: AuthCapabilitiesV2 | None = None
    elicitation: ElicitationCapabilities | None = None


@record
class InitializeRequestV2:
    """``initialize``: the first request of a client."""

    METHOD: ClassVar = "initialize"
    protocol_version: int
    info: Implementation
    capabilities: ClientCapabilitiesV2 | None = None


@record
class PromptCapabilitiesV2:
    """Content blocks that prompts may have, besides text and resource links."""

    image: Present | None = None
    audio: Present | None = None
    embedded_context: Present | None = None


@record
class McpCapabilitiesV2:
    """Transports to MCP servers of a client."""

    stdio: Present | None = None
    http: Present | None = None


@record
class SessionCapabilitiesV2:
    """Abilities for sessions, besides new, list, resume, close, prompt and cancel, which every agent has."""

    prompt: PromptCapabilitiesV2 | None = None
    mcp: McpCapabilitiesV2 | None = None
    delete: Present | None = None
    additional_directories: Present | None = None
    meta: Meta = None


@record
class AgentCapabilitiesV2:
    """Abilities of an agent."""

    session: SessionCapabilitiesV2 | None = None
    meta: Meta = None


@record
class TerminalAuthV2:
    """A login in a terminal: the client runs the agent's own command with these arguments and variables."""

    TAG: ClassVar = ("type", "terminal")
    method_id: str
    name: str
    description: str | None = None
    args: tuple[str, ...] | None = None
    env: tuple[NamedValue, ...] | None = None


@record
class AgentAuthV2:
    """A login that the agent carries out by itself."""

    TAG: ClassVar = ("type", "agent")
    method_id: str
    name: str
    description: str | None = None


@record
class InitializeResponseV2:
    """The agent's answer to ``initialize``."""

    protocol_version: int
    info: Implementation
    capabilities: AgentCapabilitiesV2
    auth_methods: tuple[TerminalAuthV2 | AgentAuthV2, ...]


@record
class LoginRequest:
    """``auth/login``: log in by the method of this id."""

    METHOD: ClassVar = "auth/login"
    method_id: str


@record
class LogoutRequestV2:
    """``auth/logout``: forget the login."""

    METHOD: ClassVar = "auth/logout"
