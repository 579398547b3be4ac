"""How an A2A server serves: what its owner may choose."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from isthmus import __version__
from isthmus.a2a.server.users import Caps
from isthmus.encoding.codec import JsonObject


@dataclass(frozen=True, slots=True)
class Skill:
    """What an agent can do, as its card tells."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


TEXT_MODES = ("text/plain", "application/json")
"""The media types of an agent that reads and gives text and data alone."""
CODE_GENERATION = Skill(
    "code_generation",
    "Code generation",
    "Reads, explains, writes and changes code in a workspace, and runs commands there. "
    "Edits and commands are confirmed by a user first.",
    ("code", "development", "tools"),
    ("Fix the failing test in tests/test_parser.py", "Explain what src/main.c does"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The agent that is served, as its card describes it. ``extension_required`` is the extension's flag there.

    ``security_schemes`` are how requests are authenticated, by name, as OpenAPI writes them; None: by bearer tokens.
    ``versions`` are those of A2A whose members a card has for requests that state none; both are always served.
    ``input_modes`` are the media types that messages may have, ``output_modes`` those of the answers and artifacts.
    ``default_workspace``: sessions need not name a folder, also those of clients that speak the extension.
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


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Sizes are bytes, times seconds.

    ``hosts`` are the names, besides the loopback ones, by which the server is reached (the bound host). ``public_url``
    stands in the card instead of what the client called. ``strict_extension`` refuses clients without the extension.
    ``blocking_limit`` ends the wait of a message/send, which then answers with the task as it stands; ``body_deadline``
    the wait for a request; ``keep_alive`` is the silence after which a stream gets a comment. ``user_caps`` hold for
    users whose token has none of its own; the local user has none. ``user_tier`` goes into
    the metadata of events, for users whose token names none.
    """

    token: str
    hosts: tuple[str, ...] = ()
    public_url: str | None = None
    strict_extension: bool = False
    body_limit: int = 20_000_000
    body_deadline: float = 30
    blocking_limit: float = 600
    keep_alive: float = 15
    user_caps: Caps = field(default_factory=Caps)
    user_tier: str | None = None
    identity: Identity = field(default_factory=Identity)
