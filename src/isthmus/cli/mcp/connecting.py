"""Connects to MCP servers for the duration of a command. Imports what MCP needs."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from isthmus.cli.mcp.rows import CONNECTED, DISCONNECTED, NEEDS_LOGIN, ServerRow
from isthmus.cli.mcp.servers import own_environment, say
from isthmus.mcp_host.catalogue.manifests import Manifests, users_manifests
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.connection_context import ConnectionContext, StartLimit
from isthmus.mcp_host.diagnosis.trace import Trace
from isthmus.tools.port.servers import ServerState

DEFAULT_TIMEOUT = 15_000
"""Maximum time to connect in milliseconds to a server whose configuration has no timeout."""
LONGEST_TIMEOUT = 60_000
"""Maximum time to connect in milliseconds that a server's own configuration can set: it is also for calls."""
PATIENCE_SECONDS = 3.0
"""Time after which the servers that are still waited for are named."""


def with_timeout(config: ServerConfig, timeout: int | None, default: int = DEFAULT_TIMEOUT) -> ServerConfig:
    """Return `config` with `timeout` milliseconds to connect.

    None means its own timeout, up to LONGEST_TIMEOUT, and `default` if it has none. It is started at once, even if it
    is configured to wait for its first call.
    """
    own = default / 1000 if config.timeout is None else min(config.timeout, LONGEST_TIMEOUT / 1000)
    seconds = own if timeout is None else timeout / 1000
    return dataclasses.replace(config, timeout=seconds, lazy=False)


def own_context() -> ConnectionContext:
    """Return the context of a connection for one command. What an agent remembers of failures ends with a success."""
    environment, manifests = own_environment(), Manifests(users_manifests())
    return ConnectionContext(environment, Path.cwd().resolve(), Path.home(), manifests=manifests, notes_failures=False)


@asynccontextmanager
async def connecting(
    configs: Iterable[ServerConfig], trace: Trace | None = None
) -> AsyncGenerator[dict[str, ServerConnection], None]:
    """Yield connections by name, started at the same time unless there are many, and close them at the end."""
    context = dataclasses.replace(own_context(), gate=StartLimit(), trace=trace)
    connections = {config.name: ServerConnection(config, context) for config in configs}
    try:
        for connection in connections.values():
            connection.start()
        yield connections
    finally:
        await asyncio.gather(*(connection.aclose() for connection in connections.values()))


async def settle(row: ServerRow, connection: ServerConnection) -> None:
    """Wait until the server is connected or has failed, and set the status of its row."""
    # Each of the two transports for a URL has a deadline to connect, and one to list.
    await connection.settled(connection.config.connect_seconds * 4 + 5)
    match connection.state:
        case ServerState.CONNECTED:
            row.status = CONNECTED
            row.tools = len(connection.catalogue.tools)
        case ServerState.NEEDS_LOGIN:
            row.status = NEEDS_LOGIN
            row.details.append(f"it requires a login: isthmus mcp login {connection.config.name}")
        case _:
            row.status = DISCONNECTED
            row.details.append(connection.problem or "it did not answer in time")
    row.details += [f"Warning: {warning}" for warning in connection.config.warnings]


async def trying(
    rows: Sequence[ServerRow], timeout: int | None
) -> AsyncGenerator[tuple[ServerRow, ServerConnection | None], None]:
    """Connect to all usable servers at the same time; yield each row in order, once its outcome is known.

    `timeout` is as in :func:`with_timeout`.
    """
    configs = [with_timeout(row.config, timeout) for row in rows if row.is_usable and row.config is not None]
    async with connecting(configs) as connections:
        waiting = asyncio.create_task(_name_the_slow(connections))
        try:
            for row in rows:
                connection = connections.get(row.server.name)
                if connection is None:
                    row.note_untried()
                else:
                    await settle(row, connection)
                yield row, connection
        finally:
            waiting.cancel()


async def _name_the_slow(connections: dict[str, ServerConnection]) -> None:
    await asyncio.sleep(PATIENCE_SECONDS)
    slow = [name for name, found in connections.items() if not found.is_settled]
    if slow:
        say(f"Waiting for {', '.join(slow)} ...", err=True)
