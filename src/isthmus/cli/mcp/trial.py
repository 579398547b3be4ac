"""Connects to MCP servers for the duration of a command."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from isthmus.cli.mcp.servers import own_environment
from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.connection import ServerConnection
from isthmus.mcp_host.connection.connection_context import ConnectionContext, StartLimit
from isthmus.mcp_host.diagnosis.trace import Trace


def limited(config: ServerConfig, timeout: int | None, longest: int) -> ServerConfig:
    """Return `config` with `timeout` milliseconds to connect; None means its own timeout, up to `longest` ms.

    It is started at once, even if it is configured to wait for its first call.
    """
    seconds = timeout / 1000 if timeout is not None else min(config.connect_seconds, longest / 1000)
    return dataclasses.replace(config, timeout=seconds, lazy=False)


@contextlib.asynccontextmanager
async def connecting(
    configs: Iterable[ServerConfig], trace: Trace | None = None
) -> AsyncGenerator[dict[str, ServerConnection], None]:
    """Yield connections to all of them by name, started together if that is quick, and close them at the end."""
    context = ConnectionContext(own_environment(), Path.cwd().resolve(), Path.home(), gate=StartLimit(), trace=trace)
    connections = {config.name: ServerConnection(config, context) for config in configs}
    try:
        for connection in connections.values():
            connection.start()
        yield connections
    finally:
        await asyncio.gather(*(connection.aclose() for connection in connections.values()))
