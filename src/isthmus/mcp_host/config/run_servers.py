"""Servers for one run: ``--mcp-config``, ``--strict-mcp-config`` and ``--allowed-mcp-server-names``.

The user names the file, but somebody else may have written it. Its servers may start; their ``trust`` does not count.
Not here: the order among the other files, see :mod:`isthmus.mcp_host.config.workspace_config`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.mcp_host.config.enablement import enablement_key
from isthmus.mcp_host.config.entry_reader import ServerConfigError
from isthmus.record import record
from isthmus.settings import settings_text

OPTION = "--mcp-config"


@record
class RunSource:
    """The servers of one ``--mcp-config``; ``path`` is its file, or the option itself for JSON."""

    path: Path
    servers: Mapping[str, object]


@record
class RunServers:
    """``sources``: further servers, the last of a name counts. ``is_alone``: no other servers are used.

    ``allowed``: keys of the only servers that are used, None for all.
    """

    sources: tuple[RunSource, ...] = ()
    is_alone: bool = False
    allowed: frozenset[str] | None = None

    def refusal(self, name: str) -> str | None:
        """Return why a server is not used in this run, or None."""
        if self.allowed is None or enablement_key(name) in self.allowed:
            return None
        return "--allowed-mcp-server-names does not name it"


NO_RUN_SERVERS = RunServers()
"""The command line names no servers."""


def read_run_servers(configs: Sequence[str], names: Sequence[str], *, is_alone: bool) -> RunServers:
    """Read the files, or the JSON, of ``--mcp-config``; `names` may have several names each, with commas.

    Raises:
        ServerConfigError: a file cannot be read, or has another form.
    """
    allowed = frozenset(enablement_key(part) for name in names for part in name.split(",") if part.strip())
    if names and not allowed:
        raise ServerConfigError("--allowed-mcp-server-names: expected names of servers, received an empty text")
    sources = tuple(_source(config) for config in configs)
    return RunServers(sources, is_alone, allowed if names else None)


def _source(config: str) -> RunSource:
    is_json = config.lstrip().startswith("{")
    path = Path(OPTION) if is_json else Path(config).expanduser().absolute()
    where = OPTION if is_json else f"{OPTION} {path}"
    try:
        value: object = parse(config if is_json else settings_text(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ServerConfigError(f"{where} cannot be read: {error}; expected a file, or JSON such as {{...}}") from error
    except JsoncError as error:
        raise ServerConfigError(f"{where}, {error}") from error
    servers = cast("dict[str, object]", value).get("mcpServers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise ServerConfigError(f'{where}: expected {{"mcpServers": {{...}}}} with the servers')
    return RunSource(path, cast("dict[str, object]", servers))
