"""Hosts of MCP servers for tests, with servers as a settings file would have them."""

import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.tools.base import ToolScope, ToolSet
from isthmus.tools.servers import ServerState, ServerStatus
from support.waiting import eventually_async

HOSTILE = Path(__file__).resolve().parent / "hostile_mcp_server.py"


def hostile(way: str, *arguments: str, **settings: Any) -> dict[str, Any]:
    """The configuration of a server that misbehaves as `way` says."""
    return {"command": sys.executable, "args": ["-S", str(HOSTILE), way, *arguments], **settings}


def write_servers(home: Path, servers: Mapping[str, Any]) -> None:
    """Write the person's settings file."""
    folder = home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


@contextlib.asynccontextmanager
async def hosting(
    home: Path, servers: Mapping[str, Any], own: ToolSet | None = None, **options: Any
) -> AsyncGenerator[McpHost]:
    """A host whose person has these servers; closed at the end."""
    write_servers(home, servers)
    settings: dict[str, Any] = {"patience": 20.0, "environment": dict(os.environ), **options}
    host = McpHost(own or ToolSet(), HostOptions(home, **settings))
    try:
        yield host
    finally:
        await host.aclose()


async def status_when(
    host: McpHost, scope: ToolScope, name: str, state: ServerState, seconds: float = 20
) -> ServerStatus:
    """The status of a server, once it is in `state`."""
    found: list[ServerStatus] = []

    async def reached() -> bool:
        found[:] = [status for status in await host.servers(scope) if status.name == name]
        assert found, f"no server {name}"
        assert found[0].state is state, found[0]
        return True

    await eventually_async(reached, seconds)
    return found[0]
