"""Options of an A2A server, which its owner chooses."""

from collections.abc import Mapping
from dataclasses import field

from isthmus import __version__
from isthmus.a2a.server.users.users import Caps
from isthmus.encoding.codec import JsonObject
from isthmus.record import record


@record
class Skill:
    """A capability of an agent, as its card describes it."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


TEXT_MODES = ("text/plain", "application/json")
"""Media types of an agent that reads and writes only text and data."""
CODE_GENERATION = Skill(
    "code_generation",
    "Code generation",
    "Reads, explains, writes and changes code in a workspace, and runs commands there. "
    "Edits and commands are confirmed by a user first.",
    ("code", "development", "tools"),
    ("Fix the failing test in tests/test_parser.py", "Explain what src/main.c does"),
)


@record
class Identity:
    """The served agent as its card describes it. ``extension_required`` is the flag of the extension there.

    ``security_schemes`` say how requests are authenticated, by name, as OpenAPI writes them; None: by bearer tokens.
    ``versions`` are the versions of A2A whose members a card has when a request states none; both are always served.
    ``input_modes`` are the media types of messages, ``output_modes`` the types of answers and artifacts. With
    ``default_workspace`` no session must name a folder, even if its client speaks the extension.
    """

    name: str = "Isthmus"
    description: str = "An agent that generates code based on natural language instructions."
    version: str = __version__
    skills: tuple[Skill, ...] = (CODE_GENERATION,)
    extension_required: bool = True
    security_schemes: Mapping[str, JsonObject] | None = None
    versions: tuple[str, ...] = ("0.3", "1.0")
    input_modes: tuple[str, ...] = TEXT_MODES
    output_modes: tuple[str, ...] = TEXT_MODES
    default_workspace: bool = False


@record
class ServerOptions:
    """Options of one server."""

    token: str
    """Bearer token of the owner."""
    hosts: tuple[str, ...] = ()
    """Names besides the loopback ones by which the server is reached (the bound host)."""
    public_url: str | None = None
    """URL that the card states, instead of the one that the client used. Its path is served, too."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages, such as ``https://app.example.org``, that may send requests with a token."""
    strict_extension: bool = False
    """Whether clients without the development-tool extension are refused."""
    progress_text: bool = False
    """Whether clients without the extension are also sent the agent's texts while it works, as status messages."""
    body_limit: int = 20_000_000
    """Maximum size of a request in bytes."""
    body_deadline: float = 30
    """Maximum time in seconds in which a request must arrive."""
    bytes_in_flight: int = 80_000_000
    """Maximum number of bytes of large requests that the server reads and decodes at the same time; others wait."""
    user_bytes_in_flight: int = 40_000_000
    """The same for the requests of one user."""
    blocking_limit: float = 600
    """Maximum time in seconds that a message/send waits; the response is then the task in its current state."""
    keep_alive: float = 15
    """Time in seconds without an event after which a comment is sent on a stream."""
    user_caps: Caps = field(default_factory=Caps)
    """Limits of users whose token has none of its own; the local user has no limits."""
    user_tier: str | None = None
    """``user_tier`` in the metadata of events, for users whose token names none."""
    identity: Identity = field(default_factory=Identity)
