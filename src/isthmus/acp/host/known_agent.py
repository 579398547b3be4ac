"""Facts about one agent program that the protocol does not state. Data: no wire and no turn asks which agent it is."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from isthmus.record import record
from isthmus.runtime.server_chain import CHAIN

INHERITED = (
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"),
    CHAIN,
)
"""Environment variables that every hosted agent gets."""


@record(kw_only=True)
class KnownAgent:
    """An agent program; the defaults suit one of which nothing is known."""

    id: str
    """Id in the public registry of ACP agents."""
    title: str
    programs: tuple[str, ...] = ()
    """Names of the program, and of the packages that contain it, by which a command is recognised."""
    tested: str = ""
    """Version of its npm package with which Isthmus is tested, and which runs in place of the registry's."""
    variables: tuple[str, ...] = ()
    """Environment variables that it gets in addition to :data:`INHERITED`, e.g. its keys."""
    reads_by_itself: bool = False
    """Whether files are better not read for it, since it understands no refusal: then reading is not offered."""
    writes_by_itself: bool = False
    """Whether it writes files itself, although the client offers to."""
    takes_folders: bool = False
    """Whether it works in further folders of a session, as a client must be told before it has run."""
    unasked: str = ""
    """Sentences for users: what it does without a question unless its own settings say otherwise, and how to be asked.

    Empty if it asks before it changes files and runs commands, or if that is not known.
    """
    noise: "re.Pattern[str] | None" = None
    """Text messages that are not meant for the user, as a whole."""
    tool_name: "re.Pattern[str] | None" = None
    """Id of a call from which the tool's name is read, in its group ``name``."""
    tool_name_key: tuple[str, ...] = ()
    """Path of the tool's name in the ``_meta`` of a call."""
    mcp_title: "re.Pattern[str] | None" = None
    """Title of a call of an MCP server's tool, with the groups ``server`` and ``tool``."""
    title_is_command: bool = False
    """Whether the title of a call that executes is its command, if its arguments are not sent."""
    login: str = "Log in with the agent's own program on the machine of the server."
    """Advice to a user who is not logged in."""


UNKNOWN = KnownAgent(id="", title="Agent")
"""An agent of which nothing is known."""


def known_agent(command: Sequence[str], agents: Sequence[KnownAgent]) -> KnownAgent:
    """Return the first agent that a command names as its program or as a package that ``npx`` or ``uvx`` runs."""
    words = [word for part in command for word in (PurePath(part).name, _package_of(part), _installed_in(part))]
    for word in words:
        for agent in agents:
            if word in agent.programs:
                return agent
    return UNKNOWN


def _package_of(word: str) -> str:
    """Return a package's name without its version: ``@scope/name@1.2`` is ``@scope/name``."""
    scope, slash, name = word.rpartition("/")
    return scope + slash + re.split("@|==", name, maxsplit=1)[0]


def _installed_in(word: str) -> str:
    """Return the npm package that a file belongs to, or an empty text."""
    _, found, inside = word.rpartition("node_modules/")
    parts = inside.split("/")
    return "/".join(parts[: 2 if inside.startswith("@") else 1]) if found else ""


def agent_environment(environment: Mapping[str, str], agent: KnownAgent, more: Sequence[str] = ()) -> Mapping[str, str]:
    """Return the environment of an agent; ``more`` are further variables that the user lets it have."""
    names = dict.fromkeys((*INHERITED, *(name.lower() for name in INHERITED if "PROXY" in name)))
    names |= dict.fromkeys((*agent.variables, *more))
    return {name: environment[name] for name in names if name in environment}
