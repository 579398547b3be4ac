"""The MCP servers of a workspace, from the settings files and ``.mcp.json``, each decoded or with the reason why not.

For a server of the same name, the administrator's file wins over ``--mcp-config``, that over the project's file, that
over the user's, and all over ``.mcp.json``. The servers are in the order of the files: first the user's, then those
that only the project has. If tools of two servers have the same name, the first server's tool gets it. A file or server
with an error never hides the others. Every file can forbid servers (:mod:`isthmus.mcp_host.config.server_rules`). The
user can switch off each server (:mod:`isthmus.mcp_host.config.enablement`).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TypeAlias, cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.mcp_host.config.enablement import enablement_key, enablement_path, switched_off
from isthmus.mcp_host.config.entry_reader import ServerConfigError
from isthmus.mcp_host.config.folder_trust import FolderTrust
from isthmus.mcp_host.config.own_program import self_refusal
from isthmus.mcp_host.config.run_servers import NO_RUN_SERVERS, RunServers
from isthmus.mcp_host.config.server_config import REQUIRED, ConfigContext, Origin, ServerConfig, decode_server
from isthmus.mcp_host.config.server_rules import NO_SERVER_RULES, RuleFile, ServerRules, server_rules
from isthmus.mcp_host.config.shell_variables import ShellVariables
from isthmus.record import record
from isthmus.settings import SettingsError, project_settings_path, settings_text, user_settings_path
from isthmus.settings.extensions import find_extensions
from isthmus.settings.keys import MCP_SERVERS
from isthmus.settings.settings_file import insecure_system_file, read_values
from isthmus.settings.sources import system_defaults_path, system_settings_path
from isthmus.settings.trust.agreements import new_items
from isthmus.settings.trust.forms import MCP_FILE, SETTINGS, form_of
from isthmus.settings.trust.items import ProjectItem

MAXIMUM_SERVERS = 200
"""Maximum number of servers of one workspace; further ones are ignored and reported."""


class UnusableCause(Enum):
    """Kind of reason why a configured server is not started."""

    ERROR = "error"
    """The configuration has an error."""
    ENTRY = "entry"
    """The entry has ``"disabled": true``, as in files of other agents."""
    GATE = "gate"
    """A rule of the settings or ``--allowed-mcp-server-names`` forbids it."""
    SWITCH = "switch"
    """The user switched it off."""
    ITSELF = "itself"
    """Isthmus itself, which would start itself."""
    TRUST = "trust"
    """The folder is not trusted."""


@record
class UnusableServer:
    """A configured server that is not started. ``problem`` is the reason, with a remedy.

    ``config`` is None if the configuration has an error; ``source`` is its file.
    """

    name: str
    origin: Origin
    problem: str
    cause: UnusableCause
    config: ServerConfig | None = None
    source: Path | None = None
    is_required: bool = False
    """Whether its entry has ``required``, even if the rest of the entry has an error."""

    @property
    def is_disabled(self) -> bool:
        """Whether it is off on purpose, not because of an error."""
        return self.cause is not UnusableCause.ERROR


ConfiguredServer: TypeAlias = ServerConfig | UnusableServer


@record
class McpConfiguration:
    """The servers in their order, and the problems of whole files.

    ``is_trusted``: whether the folder is trusted; None if no project's file configures a server.
    """

    servers: tuple[ConfiguredServer, ...] = ()
    problems: tuple[str, ...] = ()
    is_trusted: bool | None = None
    administrators_rules: ServerRules = NO_SERVER_RULES
    """Rules of the machine's administrator, which count for the servers of clients, too."""


ReadText: TypeAlias = Callable[[Path], str | None]
"""Function that returns the text of a file, None if it does not exist; raises OSError or UnicodeDecodeError."""


def read_text(path: Path) -> str | None:
    """Return the text of a file; None if it does not exist."""
    try:
        return settings_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def load_configuration(
    workspace: Path,
    home: Path,
    variables: Mapping[str, str],
    trusts: FolderTrust,
    read: ReadText = read_text,
    *,
    run: RunServers = NO_RUN_SERVERS,
) -> McpConfiguration:
    """Return the servers of `workspace` (absolute, resolved) for the user with the home folder `home`.

    ``run`` are the servers that the command line names.
    """
    problems: list[str] = []
    files = _files(workspace, home)
    for file in files:
        try:
            file.load(read)
        except ServerConfigError as error:
            problems.append(str(error))
    managed = _File(Origin.SYSTEM, system_settings_path(variables))
    system, closed = _administrators(managed, variables, problems)
    own = [RuleFile(file.path, file.values, file.origin.is_of_project) for file in files[:-1]]
    rules = server_rules([*system, *own], problems, closed)
    off = _switched_off(home, read, problems)
    of_extensions = [
        _File(Origin.USER, extension.manifest, extension.servers)
        for extension in find_extensions(home, workspace, variables).enabled
    ]
    chosen = _chosen([*files, *of_extensions], managed, run)
    if len(chosen) > MAXIMUM_SERVERS:
        problems.append(f"{len(chosen)} MCP servers are configured; only the first {MAXIMUM_SERVERS} are used")
    gates = _Gates(
        rules,
        run,
        off,
        workspace,
        variables,
        trusts(workspace) if any(file.origin.is_of_project for file in chosen.values()) else None,
        {
            file.origin: {item.name for item in new_items(file.items(workspace, home), workspace)}
            for file in files
            if file.origin.is_of_project
        },
    )
    inherits = ShellVariables.of(
        [*(file.values for file in files if file.origin.is_own), *(file.values for file in system)],
        [file.values for file in files if not file.origin.is_own],
    )
    seen = {**variables, "PWD": str(workspace)}
    servers = (
        _configured(name, file, gates, ConfigContext(file.origin, file.path, workspace, seen, inherits))
        for name, file in list(chosen.items())[:MAXIMUM_SERVERS]
    )
    return McpConfiguration(tuple(servers), tuple(problems), gates.is_trusted, server_rules(system, [], closed))


def _files(workspace: Path, home: Path) -> list["_File"]:
    """Return the files of the user and the project, in their order; ``.mcp.json`` is the last."""
    files = [_File(Origin.USER, user_settings_path(home))]
    if project_settings_path(workspace).resolve() != files[0].path.resolve():
        files.append(_File(Origin.PROJECT, project_settings_path(workspace)))
    files.append(_File(Origin.MCP_JSON, workspace / ".mcp.json"))
    return files


def _chosen(files: Sequence["_File"], managed: "_File", run: RunServers) -> dict[str, "_File"]:
    """Return the file that configures each server, in the order of the servers."""
    given = [_File(Origin.RUN, source.path, source.servers) for source in run.sources]
    chosen: dict[str, _File] = {}
    for file in given if run.is_alone else (*files, *given):
        for name in file.servers:
            if name not in chosen or file.origin in (Origin.PROJECT, Origin.RUN):
                chosen[name] = file  # keeps its place in the order, set by the first file
    return chosen | {name: managed for name in managed.servers if not run.is_alone or name in chosen}


@record
class _Gates:
    """The reasons for which a server is not started although its configuration may be right.

    ``off`` has the keys of the servers that are switched off, ``new_names`` the servers of a project's file that have
    come or changed since the user trusted the folder.
    """

    rules: ServerRules
    run: RunServers
    off: frozenset[str]
    workspace: Path
    variables: Mapping[str, str]
    is_trusted: bool | None
    new_names: Mapping[Origin, set[str]]

    def cause(self, name: str, file: "_File", config: ServerConfig | None) -> tuple[UnusableCause, str] | None:
        """Return why a server is not started, as cause and text; None if nothing is against it."""
        forbidden = self.rules.name_refusal(name) if config is None else self.rules.refusal(config)
        if (reason := forbidden or self.run.refusal(name)) is not None:
            return UnusableCause.GATE, reason
        if file.has_flag(name, "disabled"):
            return UnusableCause.ENTRY, f'{file.path} has "disabled": true; remove it to use the server'
        is_off = enablement_key(name) in self.off
        itself = None if config is None or is_off else self_refusal(config, self.workspace, self.variables)
        if itself is not None:
            return UnusableCause.ITSELF, itself
        if file.origin.is_of_project and not self.is_trusted:
            return UnusableCause.TRUST, (
                f"{file.path} configures it, and servers from a project's files run only in a folder that you trust: "
                f"trust it in your editor, or with `isthmus trust {self.workspace}`"
            )
        if name in self.new_names.get(file.origin, ()):
            return UnusableCause.TRUST, (
                f"{file.path} configures it, and it is new or changed since you trusted the folder: "
                f"`isthmus trust --show {self.workspace}` shows it, and `isthmus trust {self.workspace}` allows it"
            )
        if is_off:
            return UnusableCause.SWITCH, (
                f"it is switched off; isthmus mcp enable {name}, or /mcp enable {name}, switches it on"
            )
        return None


def _configured(name: str, file: "_File", gates: _Gates, context: ConfigContext) -> ConfiguredServer:
    """Return a server that is started, or why it is not."""
    config, error = _decoded(name, gates.rules.managed(name, file.servers[name]), context)
    if (found := gates.cause(name, file, config)) is not None:
        return UnusableServer(name, file.origin, found[1], found[0], config, file.path)
    if config is not None:
        return config
    is_required = file.has_flag(name, REQUIRED)
    return UnusableServer(name, file.origin, error, UnusableCause.ERROR, source=file.path, is_required=is_required)


def _decoded(name: str, entry: object, context: ConfigContext) -> tuple[ServerConfig | None, str]:
    """Return the server's configuration and an empty text, or None and the error."""
    try:
        return decode_server(name, entry, context), ""
    except ServerConfigError as error:
        return None, str(error)


def _switched_off(home: Path, read: ReadText, problems: list[str]) -> frozenset[str]:
    path = enablement_path(home)
    try:
        return switched_off(read(path) or "")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {error}")
    except JsoncError as error:
        problems.append(f"{path}, {error}. Correct the file; until then it switches off no server.")
    return frozenset()


class _File:
    """One file and its values about MCP."""

    def __init__(self, origin: Origin, path: Path, servers: Mapping[str, object] | None = None) -> None:
        self.origin = origin
        self.path = path
        self.servers: Mapping[str, object] = servers or {}
        self.values: Mapping[str, object] = {}

    def load(self, read: ReadText) -> None:
        """Read the file; raises ServerConfigError."""
        try:
            text = read(self.path)
            value: object = parse(text) if text and text.strip() else {}
        except (OSError, UnicodeDecodeError) as error:
            raise ServerConfigError(f"{self.path} cannot be read: {error}") from error
        except JsoncError as error:
            raise ServerConfigError(
                f"{self.path}, {error}. Correct the file; until then its MCP servers are ignored."
            ) from error
        self.take(self._object("", value))

    def take(self, values: Mapping[str, object]) -> None:
        """Take the values of a file that was read; raises ServerConfigError."""
        self.values = values
        self.servers = self._object(MCP_SERVERS.name, self.values.get(MCP_SERVERS.name))

    def has_flag(self, name: str, key: str) -> bool:
        """Return whether `key` of a server's entry is true."""
        entry = self.servers[name]
        return isinstance(entry, dict) and cast("dict[str, object]", entry).get(key) is True

    def items(self, workspace: Path, home: Path) -> list[ProjectItem]:
        """Return the servers as items that need the user's consent, if this is a project's file."""
        form = form_of(SETTINGS if self.origin is Origin.PROJECT else MCP_FILE, workspace, home)
        return [form.server(name, entry) for name, entry in self.servers.items()]

    def _object(self, key: str, value: object) -> Mapping[str, object]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            where = f"{key}: " if key else ""
            raise ServerConfigError(f"{self.path}: {where}expected an object {{...}}, received {value!r:.80}")
        return cast("Mapping[str, object]", value)


def _administrators(
    managed: "_File", variables: Mapping[str, str], problems: list[str]
) -> tuple[list[RuleFile], str | None]:
    """Return the files of the machine's administrator, and why no server may be used if one cannot be read.

    The servers of the settings file are put into `managed`.
    """
    found: list[RuleFile] = []
    closed: str | None = None
    for path in (managed.path, system_defaults_path(variables)):
        if (problem := insecure_system_file(path)) is not None:
            problems.append(problem)
            continue
        try:
            if (values := read_values(path)) is None:
                continue
            found.append(RuleFile(path, values, is_of_system=True))
            if path == managed.path:
                managed.take(values)
        except (SettingsError, ServerConfigError) as error:
            closed = f"the administrator's rules cannot be read: {error}"
            problems.append(str(error))
    return found, closed
