"""The MCP servers of one workspace: their connections by name, and the names of their tools for the model.

A connection is kept until its configuration changes. Not here: the workspaces, and clients' own servers, see
:mod:`isthmus.mcp_host.host`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from isthmus.mcp_host.catalogue.tool_names import ToolKey, assign_names
from isthmus.mcp_host.config.secrets import summary
from isthmus.mcp_host.config.server_config import Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.config.workspace_config import McpConfiguration, UnusableCause, UnusableServer
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.tool import McpTool
from isthmus.record import record
from isthmus.sandbox.confinement import describe_policy
from isthmus.text.units import show_count
from isthmus.text.visible import visible_line
from isthmus.tools.port.servers import ServerState, ServerStatus, ServerTool
from isthmus.tools.port.tool_set import ServerTools

OnWait: TypeAlias = Callable[[Sequence[str], float], None]
"""Callback that gets the names of the awaited servers, in configuration order, and the time waited in seconds. It gets
no names when the wait is over."""


_LOG = logging.getLogger("isthmus.mcp")


@record
class Missing:
    """A configured server that currently offers nothing, and the reason, which may quote the server."""

    name: str
    problem: str


class WorkspaceServers:
    """The servers of a workspace. ``connect`` creates the connection to a server without starting it.

    ``on_wait`` is called every ``report_seconds`` during a wait for servers.
    ``is_strict``: all servers that are not switched off are required.
    """

    def __init__(
        self,
        workspace: Path,
        connect: Callable[[ServerConfig], ServerConnection],
        on_wait: OnWait | None = None,
        *,
        is_strict: bool = False,
        report_seconds: float,
    ) -> None:
        self.workspace = workspace
        self.configuration = McpConfiguration()
        self.users: set[tuple[str, str]] = set()
        """The sessions and tasks that currently use the servers."""
        self._connect = connect
        self._on_wait = on_wait
        self._is_strict = is_strict
        self._report_seconds = report_seconds
        self._connections: dict[str, ServerConnection] = {}
        self._given: dict[ToolKey, str] = {}
        self._awaited: set[int] = set()
        self._warnings = set[str]()
        self._configuring = asyncio.Lock()
        self._is_closed = False

    async def configure(self, configuration: McpConfiguration) -> None:
        """Connect new servers, and close removed ones; a server with a changed configuration is both."""
        async with self._configuring:
            self.configuration = configuration
            self._warn_of_itself()
            wanted = {server.name: server for server in configuration.servers if isinstance(server, ServerConfig)}
            before = self._connections
            kept = {name: found for name, found in before.items() if found.config == wanted.get(name)}
            fresh = {name: self._connect(config) for name, config in wanted.items() if name not in kept}
            await asyncio.to_thread(_load_cached, tuple(fresh.values()))
            if self._is_closed:
                return
            self._connections = {name: kept.get(name) or fresh[name] for name in wanted}
            for connection in self._connections.values():
                connection.start()
        await asyncio.gather(*(found.aclose() for name, found in before.items() if name not in kept))

    def _warn_of_itself(self) -> None:
        """Log once for each server that is left out because it is Isthmus itself."""
        for server in self.configuration.servers:
            if isinstance(server, UnusableServer) and server.cause is UnusableCause.ITSELF:
                text = visible_line(f"MCP server {server.name} is left out: {server.problem}")
                if text not in self._warnings:
                    self._warnings.add(text)
                    _LOG.warning("%s", text)

    def connections(self, names: Collection[str] | None = None) -> list[ServerConnection]:
        """Return the connections in the order of the configuration; with `names`, only of these servers."""
        return [found for name, found in self._connections.items() if names is None or name in names]

    def connection(self, name: str) -> ServerConnection | None:
        """Return the connection of a server that is configured and not disabled."""
        return self._connections.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all configured servers, including disabled and broken ones."""
        return tuple(server.name for server in self.configuration.servers)

    @property
    def is_settled(self) -> bool:
        """Whether the outcome of connecting is known for each server."""
        return all(found.is_settled or found.is_asleep for found in self._connections.values())

    async def wait_for(self, connections: Sequence[ServerConnection], seconds: float) -> None:
        """Wait once for the catalogue of each connection, at most `seconds`.

        The wait for servers that could not be used in the last run is shorter. Required servers are always awaited,
        until the outcome of connecting is known or their own deadline has passed.
        """
        waiting = {
            found: self._wait_seconds(found, seconds)
            for found in connections
            if not found.is_settled
            and not found.is_asleep
            and (self._is_required(found.config) or not (id(found) in self._awaited or found.is_known))
        }
        await self._wait_for(waiting)
        self._awaited.update(id(found) for found in connections)
        await asyncio.gather(
            *(
                found.known.note_wait(waited, seconds)
                for found, waited in waiting.items()
                if not (found.is_known or self._is_required(found.config))
            )
        )

    async def slow(self, connections: Sequence[ServerConnection], seconds: float) -> AsyncGenerator[str]:
        """Yield the name of each server of whose connection nothing was known after ``seconds``, once it is known."""
        awake = [found for found in connections if not found.is_asleep]
        await asyncio.gather(*(found.settled(seconds) for found in awake))
        waiting = {
            asyncio.ensure_future(found.settled(found.config.connect_seconds + 1)): found.config.name
            for found in awake
            if not found.is_settled
        }
        try:
            while waiting:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    yield waiting.pop(one)
        finally:
            for one in waiting:
                one.cancel()

    def _is_required(self, config: ServerConfig) -> bool:
        return config.required or self._is_strict

    def missing(self, names: Collection[str] | None = None, *, required: bool = False) -> tuple[Missing, ...]:
        """Return the configured servers that are not switched off and currently offer nothing.

        With `names`, only these servers are considered; with `required`, only the required servers that are not
        connected.
        """
        found: list[Missing] = []
        for server in self.configuration.servers:
            if names is not None and server.name not in names:
                continue
            if isinstance(server, UnusableServer):
                if not server.is_disabled and (not required or server.is_required or self._is_strict):
                    found.append(Missing(server.name, server.problem))
                continue
            connection = self._connections.get(server.name)
            if connection is None or (required and not self._is_required(server)) or connection.is_asleep:
                continue
            is_there = connection.state is ServerState.CONNECTED if required else not connection.catalogue.is_empty
            if not is_there:
                found.append(Missing(server.name, connection.problem or "it is not connected yet"))
        return tuple(found)

    async def settle(self, seconds: float) -> None:
        """Wait at most `seconds` until the outcome of connecting is known for each server."""
        found = [one for one in self._connections.values() if not (one.is_settled or one.is_asleep)]
        await self._wait_for({one: self._wait_seconds(one, seconds) for one in found})

    async def _wait_for(self, waiting: Mapping[ServerConnection, float]) -> None:
        if waiting:
            reporting = asyncio.create_task(self._report(tuple(waiting)))
            began = time.monotonic()
            try:
                await asyncio.gather(*(_settled(found, seconds) for found, seconds in waiting.items()))
            finally:
                reporting.cancel()
                if self._on_wait is not None:
                    self._on_wait((), time.monotonic() - began)

    def _wait_seconds(self, connection: ServerConnection, seconds: float) -> float:
        if self._is_required(connection.config):
            return max(seconds, connection.config.connect_seconds + 1)
        return connection.known.patience(seconds)

    async def _report(self, waiting: Sequence[ServerConnection]) -> None:
        """Report the awaited servers until cancelled."""
        began = time.monotonic()
        while self._on_wait is not None:
            await asyncio.sleep(self._report_seconds)
            names = tuple(found.config.name for found in waiting if not found.is_settled)
            if names:
                self._on_wait(names, time.monotonic() - began)

    def tools(self, connections: Iterable[ServerConnection], reserved: Collection[str]) -> tuple[McpTool, ...]:
        """Return the tools of these connections, under names that do not change as long as the agent runs."""
        used = list(connections)
        names = self._names(reserved)
        for key, name in assign_names(_keys(used), reserved, names).items():
            self._given[key] = name
        return tuple(
            McpTool(self._given[found.config.name, tool.name], tool, found)
            for found in used
            for tool in found.catalogue.tools
        )

    def _names(self, reserved: Collection[str]) -> dict[ToolKey, str]:
        """Return the names of all known tools, including unused ones."""
        return {**assign_names(_keys(self._connections.values()), reserved, self._given), **self._given}

    def statuses(self, reserved: Collection[str]) -> list[ServerStatus]:
        """Return the servers' states in the order of the configuration, then the files that could not be read."""
        names = self._names(reserved)
        statuses: list[ServerStatus] = []
        for server in self.configuration.servers:
            if isinstance(server, UnusableServer):
                state = ServerState.DISABLED if server.is_disabled else ServerState.DISCONNECTED
                is_missing = not server.is_disabled
                statuses.append(ServerStatus(server.name, state, problem=server.problem, is_missing=is_missing))
            elif (found := self._connections.get(server.name)) is not None:
                statuses.append(status_of(found, names, self.workspace))
        statuses += [
            ServerStatus("settings", ServerState.DISCONNECTED, problem=problem, is_file=True)
            for problem in self.configuration.problems
        ]
        return statuses

    async def aclose(self) -> None:
        """Close all connections at once."""
        self._is_closed = True
        connections, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(connection.aclose() for connection in connections))


def server_tools(tools: Sequence[McpTool], connections: Iterable[ServerConnection]) -> tuple[ServerTools, ...]:
    """Return the names of the tools, grouped by server."""
    return tuple(
        ServerTools(
            name=found.config.name,
            tools=tuple(tool.name for tool in tools if tool.server_name == found.config.name),
            origin=origin_text(found.config),
            is_always_loaded=found.config.always_load,
            is_remote=found.config.is_remote,
        )
        for found in connections
    )


def origin_text(config: ServerConfig) -> str:
    """Return the owner and the file of a server's configuration, for :class:`~isthmus.tools.port.base.ServerTools`."""
    if config.origin is Origin.RUN:
        return f"{config.origin.value} {config.source}"
    return f"project {config.source}" if config.origin.is_of_project else config.origin.value


def status_of(connection: ServerConnection, names: dict[ToolKey, str], workspace: Path | None = None) -> ServerStatus:
    """Return the state of one server; `names` are the names of its tools for the model."""
    config, catalogue = connection.config, connection.catalogue
    state, problem = connection.state, connection.problem
    if state is ServerState.CONNECTING and connection.failure is not None:
        state, problem = ServerState.DISCONNECTED, connection.failure  # what is known until it has been tried again
    notes = [problem] if problem else []
    if connection.known.wait_note is not None and state is ServerState.CONNECTING:
        notes.append(connection.known.wait_note)
    if catalogue.dropped:
        notes.append("in its listing: " + "; ".join(catalogue.dropped))
    notes += [f"Warning: {warning}" for warning in config.warnings] if notes else config.warnings
    return ServerStatus(
        name=config.name,
        state=state,
        transport=config.endpoint.transport,
        description=config.description,
        tools=tuple(
            ServerTool(names.get((config.name, tool.name), tool.name), tool.description, tool.parameters)
            for tool in catalogue.tools
        ),
        prompts=tuple(prompt.name for prompt in catalogue.prompts),
        resources=tuple(resource.uri for resource in catalogue.resources),
        problem="\n".join(notes) or None,
        summary=(*summary(config, workspace), *_sandbox(connection)),
        notes=_notes(connection),
        is_container=_is_container(config),
        is_missing=catalogue.is_empty and not connection.is_asleep,
    )


def _sandbox(connection: ServerConnection) -> tuple[str, ...]:
    policy = connection.config.sandbox
    return () if policy is None else (f"Sandbox: {connection.log.sandbox or describe_policy(policy)}",)


def _notes(connection: ServerConnection) -> tuple[str, ...]:
    config, notes = connection.config, list[str]()
    if config.origin is Origin.MCP_JSON:
        notes.append("Configured in: .mcp.json")
    if config.required:
        notes.append("Required: no turn begins without it")
    if config.lazy:
        notes.append("Starts: at its first call (lazy)")
    if connection.known.is_cached:
        notes.append("Listed: when it was last connected")
    if connection.log.left_out:
        count = show_count(connection.log.left_out, "notification")
        notes.append(f"Left out: {count} that do not fit MCP; the first: {connection.log.first_left_out}")
    if connection.asking.sampled:
        notes.append(f"Sampling: {show_count(connection.asking.sampled, 'request')} to the model for this server")
    notes += [f"Asked: {note}" for note in connection.asking.notes]
    return tuple(notes)


def _is_container(config: ServerConfig) -> bool:
    """Return whether a server runs in its own container, judging by its command."""
    endpoint = config.endpoint
    return isinstance(endpoint, StdioEndpoint) and Path(endpoint.command).name in ("docker", "podman", "nerdctl")


def _keys(connections: Iterable[ServerConnection]) -> list[ToolKey]:
    return [(found.config.name, tool) for found in connections for tool in found.known.tool_names]


async def _settled(connection: ServerConnection, seconds: float) -> None:
    """Wait for the outcome of connecting; if the server could not be used in the last run, count from its start."""
    if connection.known.is_held and connection.began is not None:
        seconds -= time.monotonic() - connection.began
    await connection.settled(max(0.0, seconds))


def _load_cached(connections: Iterable[ServerConnection]) -> None:
    for connection in connections:
        connection.load_cached()
