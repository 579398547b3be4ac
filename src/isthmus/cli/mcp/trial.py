"""Connects to MCP servers for the time of a command, and leaves nothing of them behind."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from isthmus.cli.mcp.servers import own_environment
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.start_limit import StartLimit
from isthmus.mcp_host.diagnosis.trace import Trace


def limited(config: ServerConfig, timeout: int | None, longest: int) -> ServerConfig:
    """`config` with so many milliseconds to connect; None: its own timeout, `longest` at the most.

    It is started at once, also where it would wait for its first call.
    """
    seconds = timeout / 1000 if timeout is not None else min(config.connect_seconds, longest / 1000)
    return dataclasses.replace(config, timeout=seconds, lazy=False)


@contextlib.asynccontextmanager
async def connecting(
    configs: Iterable[ServerConfig], trace: Trace | None = None
) -> AsyncGenerator[dict[str, ServerConnection], None]:
    """Connections to all of them by name, begun at the same time as far as that is quick, and closed at the end."""
    context = ConnectionContext(own_environment(), Path.cwd().resolve(), Path.home(), gate=StartLimit(), trace=trace)
    connections = {config.name: ServerConnection(config, context) for config in configs}
    try:
        for connection in connections.values():
            connection.start()
        yield connections
    finally:
        await asyncio.gather(*(connection.aclose() for connection in connections.values()))
