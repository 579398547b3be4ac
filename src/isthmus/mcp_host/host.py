"""The MCP host: implements an agent's ToolSource and ToolServers with the MCP servers of its workspaces.

Servers connect in the background from the first use of their workspace; the first caller that requests tools waits a
little for servers that are still connecting. A client's own servers (AgentSettings with a URL) are connected for one
segment of its task, and closed with it. A slow, hanging or dying server does not affect the others.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from isthmus.development_tool import McpServerSettings
from isthmus.mcp_host.catalogue.manifests import Manifests
from isthmus.mcp_host.client_connections import ClientConnections
from isthmus.mcp_host.config.client_servers import ALL_SERVERS, require_allowed, require_known, require_name
from isthmus.mcp_host.config.enablement import enablement_path, with_server_off, with_server_on
from isthmus.mcp_host.config.folder_trust import FolderTrust, file_trust
from isthmus.mcp_host.config.run_servers import NO_RUN_SERVERS, RunServers
from isthmus.mcp_host.config.server_config import Origin, ServerConfig
from isthmus.mcp_host.config.workspace_config import McpConfiguration, load_configuration
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.connection_context import ConnectionContext, McpTimeouts, StartLimit
from isthmus.mcp_host.oauth.login_flow import OpenBrowser, Paste
from isthmus.mcp_host.oauth.logins import Logins
from isthmus.mcp_host.resource_tools import RESOURCE_TOOLS
from isthmus.mcp_host.task_folders import TaskFolders
from isthmus.mcp_host.tool_sets import ToolSets
from isthmus.mcp_host.workspace_servers import OnWait, WorkspaceServers, status_of
from isthmus.questions import ELICITATION, SAMPLING
from isthmus.record import record
from isthmus.settings.edit_file import SettingsFileError, change_file
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import REQUIRED_MISSING, DiscoveryState, ServerState, ServerStatus, ToolServers
from isthmus.tools.port.tool_set import CALL_TOOL, SEARCH_TOOL, ToolScope, ToolSet, ToolSource

if TYPE_CHECKING:
    from isthmus.network.checked_transport import AddressPolicy
    from isthmus.sandbox.finding import SandboxFinder

MAXIMUM_WORKSPACES = 8
"""Maximum number of workspaces with connected servers; the least recently used ones are closed."""
CLIENT_CONNECT_SECONDS = 15.0
CHANGE_SECONDS = 2.0
"""Maximum time in seconds that a turn waits for the new listing of a server that reported changed tools."""


@record
class HostOptions:
    """Options of a host.

    ``wait_seconds`` is the maximum wait for the tools of servers that are still connecting. ``address_policy`` is
    the rule for the addresses of clients' own servers; None allows every address. ``trusts`` decides about folders;
    None for the rules in the user's file. ``meet_editor`` waits until an editor of the folder, if any, can report
    whether the folder is trusted. ``open_browser`` opens a page for the user; it returns False if it cannot.
    ``cache`` is the folder of the servers' listings for the next start; None for no cache. ``sandbox`` finds the
    sandbox for servers. ``reads_freely`` returns whether the read-only tools of a server in the user's own file run
    without approval. ``is_for_one_turn``: the state of discovery is requested only once, so the request waits until
    it is final. ``is_strict``: no turn begins before all servers that are not switched off are connected.
    ``allows_client_programs``: servers of clients that are commands run in sessions of the local user.
    ``run_servers``: servers that the command line names.
    """

    home: Path
    environment: Mapping[str, str]
    wait_seconds: float = 5.0
    address_policy: "AddressPolicy | None" = None
    trusts: FolderTrust | None = None
    meet_editor: Callable[[Path], Awaitable[object]] | None = None
    open_browser: OpenBrowser | None = None
    cache: Path | None = None
    sandbox: "SandboxFinder | None" = None
    reads_freely: Callable[[str], bool] | None = None
    on_wait: OnWait | None = None
    is_for_one_turn: bool = False
    is_strict: bool = False
    timeouts: McpTimeouts = McpTimeouts()
    allows_client_programs: bool = False
    run_servers: RunServers = NO_RUN_SERVERS


class McpHost(ToolSource, ToolServers):
    """The MCP servers of an agent: their tools, and the operations on servers for commands."""

    def __init__(self, own: ToolSet, options: HostOptions) -> None:
        self._options = options
        self._trusts = options.trusts or file_trust(options.home)
        self._workspaces: dict[Path, asyncio.Task[WorkspaceServers]] = {}
        self._clients = ClientConnections(self._client_context)
        self._logins = Logins(options.home, options.open_browser)
        self._folders = TaskFolders()
        self._is_closed = False
        self._manifests = None if options.cache is None else Manifests(options.cache)
        self._gate = StartLimit()
        # The last two names are those of a server's questions: none of its tools may have them.
        self._reserved = frozenset({*own.tools, SEARCH_TOOL, CALL_TOOL, *RESOURCE_TOOLS, ELICITATION, SAMPLING})
        self._sets = ToolSets(own, self._reserved)

    # --- ToolSource --------------------------------------------------------------------------------------------------

    async def tools(self, scope: ToolScope) -> ToolSet:
        """Return the tools of the servers of a scope.

        Raises:
            ToolFailure: the scope names a server that is not configured, or a URL that is not allowed.
        """
        servers = await self._servers(self._folders.enter(scope))
        servers.users.add(_key(scope))
        await self._reconsider(servers)
        return await self._tools(scope, servers)

    @override
    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        task = self._workspaces.get(self._folders.of(scope))
        if task is None or not task.done() or not _is_usable(task):
            return tools
        servers, clients = task.result(), self._clients.of(scope) or ()
        connections = servers.connections(_named(scope))
        if connections or clients:
            await asyncio.gather(*(found.signals.listed(CHANGE_SECONDS) for found in (*connections, *clients)))
        return self._sets.of(_key(scope), servers, connections, clients, _named(scope))

    async def release(self, scope: ToolScope) -> None:
        """Close the servers that were connected for one segment only, which has ended."""
        self._sets.forget(_key(scope))
        root = self._folders.leave(scope)
        if self._is_closed:
            return
        servers = await self._servers(root)
        servers.users.discard(_key(scope))
        await self._clients.end(scope)

    async def _tools(self, scope: ToolScope, servers: WorkspaceServers) -> ToolSet:
        allows_programs = self._options.allows_client_programs and not scope.user
        self._require_known(scope.mcp_servers, servers.configuration, allows_programs=allows_programs)
        connections = servers.connections(_named(scope))
        for connection in connections:
            connection.try_again()
        clients = await self._clients.begin(scope, servers.workspace)
        waiting = servers.wait_for(connections, self._options.wait_seconds)
        if clients:
            settling = (connection.settled(CLIENT_CONNECT_SECONDS + 1) for connection in clients)
            await asyncio.gather(waiting, *settling)
        else:
            await waiting  # without a task of its own
        if missing := servers.missing(_named(scope), required=True):
            problems = "; ".join(f"{found.name}: {found.problem}" for found in missing)
            public_text = f"required MCP servers are not connected: {', '.join(found.name for found in missing)}"
            raise ToolFailure(f"required MCP servers are not connected: {problems}", REQUIRED_MISSING, public_text)
        return self._sets.of(_key(scope), servers, connections, clients, _named(scope))

    async def in_scope(self, scope: ToolScope, *, is_patient: bool = False) -> Sequence[ServerConnection]:
        """Return a session's connections in configuration order; while its task works, also its client's servers.

        ``is_patient``: check the folder's trust again and wait for connecting servers, as in :meth:`tools`.
        """
        servers = await self._servers(self._folders.of(scope))
        if is_patient:
            await self._reconsider(servers)
        connections = servers.connections(_named(scope))
        if is_patient:
            await servers.wait_for(connections, self._options.wait_seconds)
        return [*connections, *(self._clients.of(scope) or ())]

    # --- ToolServers -------------------------------------------------------------------------------------------------

    @override
    async def servers(self, scope: ToolScope) -> Sequence[ServerStatus]:
        servers = await self._servers(self._folders.of(scope))
        await self._reconsider(servers)
        statuses = servers.statuses(self._reserved)
        if (named := _named(scope)) is not None:
            statuses = [status for status in statuses if status.name in named]
        if (clients := self._clients.of(scope)) is not None:
            return [*statuses, *(status_of(connection, {}) for connection in clients)]
        for server in scope.mcp_servers:
            if server.is_own:
                transport = "http" if server.url is not None else "stdio"
                waits = "connected while its task works"
                statuses.append(ServerStatus(server.name, ServerState.DISCONNECTED, transport, problem=waits))
        return statuses

    async def awaited(self, scope: ToolScope) -> Sequence[ServerStatus]:
        """Wait for the servers as in :meth:`tools`, which then need not wait again, and return their states."""
        servers = await self._servers(self._folders.of(scope))
        await self._reconsider(servers)
        await servers.wait_for(servers.connections(_named(scope)), self._options.wait_seconds)
        return await self.servers(scope)

    async def slow_servers(self, scope: ToolScope, seconds: float) -> AsyncGenerator[ServerStatus]:
        """Yield the state of each server whose connection takes more than ``seconds``, as soon as its outcome is known.

        Raises:
            ToolFailure: as :meth:`tools`.
        """
        servers = await self._servers(self._folders.of(scope))
        async for name in servers.slow(servers.connections(_named(scope)), seconds):
            for status in await self.servers(scope):
                if status.name == name:
                    yield status

    @override
    async def discovery(self, scope: ToolScope) -> DiscoveryState:
        task = self._workspaces.get(self._folders.of(scope))
        if task is None:
            return DiscoveryState.NOT_STARTED
        if self._options.is_for_one_turn and task.done() and _is_usable(task):
            await task.result().settle(self._options.wait_seconds)
        if not task.done() or (_is_usable(task) and not task.result().is_settled):
            return DiscoveryState.IN_PROGRESS
        return DiscoveryState.COMPLETED

    @override
    async def restart(self, scope: ToolScope, name: str) -> Sequence[ServerStatus]:
        connection = await self._in_use(scope, name)
        await connection.restart()
        return await self.servers(scope)

    async def set_enabled(self, scope: ToolScope, name: str, *, is_enabled: bool) -> Sequence[ServerStatus]:
        """Switch a server on or off in the user's file, as Gemini CLI does."""
        servers = await self._servers(self._folders.of(scope))
        require_name(name, servers.names)
        edit = with_server_on if is_enabled else with_server_off
        try:
            path = enablement_path(self._options.home)
            await asyncio.to_thread(change_file, path, lambda text: edit(text, name))
        except SettingsFileError as error:
            raise ToolFailure(str(error), "mcp_enablement") from error
        return await self.refresh(scope, name)

    async def refresh(self, scope: ToolScope, name: str | None = None) -> Sequence[ServerStatus]:
        """Read the settings files and list the servers' tools again."""
        servers = await self._servers(self._folders.of(scope))
        before = servers.connections()
        await servers.configure(self._load(servers.workspace))
        if name is not None:
            require_name(name, servers.names)
        wanted = servers.connections(None if name is None else {name})
        fresh = [connection for connection in wanted if connection not in before]
        await asyncio.gather(
            *(connection.refresh() for connection in wanted if connection in before),
            *(
                connection.settled(connection.config.connect_seconds * 2)
                for connection in fresh
                if not connection.is_asleep
            ),
        )
        return await self.servers(scope)

    async def login(self, scope: ToolScope, name: str, paste: Paste | None = None) -> AsyncGenerator[str, None]:
        """Log in to a server, and yield progress messages; `paste` waits for input from the user."""
        async for line in self._logins.begin(await self._in_use(scope, name), paste):
            yield line

    @override
    async def paste(self, scope: ToolScope, name: str, text: str) -> AsyncGenerator[str, None]:
        async for line in self._logins.paste(await self._in_use(scope, name), text):
            yield line

    @override
    async def logout(self, scope: ToolScope, name: str) -> str:
        return await self._logins.end(await self._in_use(scope, name))

    async def _in_use(self, scope: ToolScope, name: str) -> ServerConnection:
        """Return the connection of a server; raise ToolFailure if it is not configured or not in use."""
        servers = await self._servers(self._folders.of(scope))
        require_name(name, servers.names)
        connection = servers.connection(name)
        if connection is None:
            status = next(status for status in servers.statuses(()) if status.name == name)
            raise ToolFailure(f"the MCP server {name!r} is not in use: {status.problem}", "mcp_not_in_use")
        return connection

    # --- its life ----------------------------------------------------------------------------------------------------

    def begin(self, workspace: Path) -> None:
        """Connect the servers of a workspace in the background."""
        self._task(workspace.resolve())

    def check(self, workspace: Path, wanted: Sequence[McpServerSettings], *, brings_programs: bool = False) -> None:
        """Check the servers of a client's AgentSettings against the configuration and the rule for URLs, at once.

        ``brings_programs``: this client may bring servers that are commands.

        Raises:
            ToolFailure: a name is not configured, a URL is not allowed, or a command is not.
        """
        if wanted:
            configuration = self._load(workspace.resolve())
            allows_programs = self._options.allows_client_programs and brings_programs
            self._require_known(wanted, configuration, allows_programs=allows_programs)

    async def aclose(self) -> None:
        """Close all servers, in about two seconds."""
        self._is_closed = True
        closing = [self._clients.aclose()]
        tasks, self._workspaces = list(self._workspaces.values()), {}
        closing += [_close(task) for task in tasks]
        closing.append(self._logins.aclose())
        await asyncio.gather(*closing, return_exceptions=True)

    def _task(self, workspace: Path) -> "asyncio.Task[WorkspaceServers]":
        if self._is_closed:
            raise ToolFailure("the MCP servers are closed because the agent is ending", "closed")
        found = self._workspaces.pop(workspace, None)
        if found is None or (found.done() and not _is_usable(found)):
            found = asyncio.create_task(self._start(workspace))
        self._workspaces[workspace] = found  # the most recently used one is last
        return found

    async def _servers(self, workspace: Path) -> WorkspaceServers:
        task = self._task(workspace)
        servers = task.result() if task.done() else await asyncio.shield(task)
        await self._close_unused()
        return servers

    async def _start(self, workspace: Path) -> WorkspaceServers:
        options = self._options
        servers = WorkspaceServers(
            workspace,
            lambda config: self._connection(config, workspace),
            options.on_wait,
            is_strict=options.is_strict,
            report_seconds=options.timeouts.report_seconds,
        )
        await servers.configure(self._load(servers.workspace))
        await self._reconsider(servers)
        return servers

    async def _reconsider(self, servers: WorkspaceServers) -> None:
        """Load the configuration again if the trust in the folder has changed, since it decides about some servers.

        If no server depends on it, the trust is not checked.
        """
        before, meet = servers.configuration.is_trusted, self._options.meet_editor
        if before is None:
            return
        if meet is not None:
            await meet(servers.workspace)
        if await asyncio.to_thread(self._trusts, servers.workspace) != before:
            await servers.configure(self._load(servers.workspace))

    async def _close_unused(self) -> None:
        for workspace, task in list(self._workspaces.items())[:-1]:
            if len(self._workspaces) <= MAXIMUM_WORKSPACES:
                return
            if not task.done() or (_is_usable(task) and task.result().users):
                continue
            del self._workspaces[workspace]
            if _is_usable(task):
                await task.result().aclose()

    def _load(self, workspace: Path) -> McpConfiguration:
        options = self._options
        return load_configuration(workspace, options.home, options.environment, self._trusts, run=options.run_servers)

    def _connection(self, config: ServerConfig, workspace: Path) -> ServerConnection:
        reads_freely = self._options.reads_freely
        context = ConnectionContext(
            self._options.environment,
            workspace,
            self._options.home,
            manifests=self._manifests,
            gate=self._gate,
            sandbox=self._options.sandbox,
            open_browser=self._options.open_browser,
            reads_freely=config.origin is Origin.USER and reads_freely is not None and reads_freely(config.name),
            timeouts=self._options.timeouts,
        )
        return ServerConnection(config, context)

    # --- clients' own servers ----------------------------------------------------------------------------------------

    def _require_known(
        self, wanted: Sequence[McpServerSettings], configuration: McpConfiguration, *, allows_programs: bool
    ) -> None:
        names = [server.name for server in configuration.servers]
        require_known(wanted, names, self._options.address_policy, allows_programs)
        require_allowed(wanted, configuration.administrators_rules)

    def _client_context(self, server: McpServerSettings, workspace: Path) -> ConnectionContext:
        options = self._options
        environment: Mapping[str, str] = options.environment if server.command is not None else {}
        return ConnectionContext(
            environment, workspace, address_policy=options.address_policy, timeouts=options.timeouts, gate=self._gate
        )


def _key(scope: ToolScope) -> tuple[str, str]:
    return scope.context_id, scope.task_id


def _named(scope: ToolScope) -> set[str] | None:
    """Return the names of the configured servers that a session uses; None for all."""
    names = {server.name for server in scope.mcp_servers if not server.is_own}
    return None if not scope.mcp_servers or ALL_SERVERS in names else names


async def _close(task: "asyncio.Task[WorkspaceServers]") -> None:
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if _is_usable(task):
        await task.result().aclose()


def _is_usable(task: "asyncio.Task[WorkspaceServers]") -> bool:
    """Return whether a finished task has succeeded."""
    return not task.cancelled() and task.exception() is None
