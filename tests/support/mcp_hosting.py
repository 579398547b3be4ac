"""Hosts of MCP servers for tests, with servers as in a settings file."""

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isthmus.mcp_host.connection.connection_context import McpTimeouts
from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.tools.port.servers import ServerState, ServerStatus
from isthmus.tools.port.tool_set import ToolScope, ToolSet
from support.ports import free_port
from support.programs import node_package, require
from support.waiting import eventually, eventually_async

PACKAGES = "@modelcontextprotocol"
SUPPORT = Path(__file__).resolve().parent
SCRIPTED = SUPPORT / "mcp_servers" / "scripted_mcp_server.py"


def scripted(behaviour: str, *arguments: str, **settings: Any) -> dict[str, Any]:
    """Return the configuration of the server on stdio that behaves so: ``plain`` or any other name in its program."""
    return {"command": sys.executable, "args": ["-S", str(SCRIPTED), behaviour, *arguments], **settings}


def write_servers(home: Path, servers: Mapping[str, Any]) -> None:
    """Write the user's settings file."""
    folder = home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


@contextlib.asynccontextmanager
async def hosting(
    home: Path, servers: Mapping[str, Any], own: ToolSet | None = None, **options: Any
) -> AsyncGenerator[McpHost]:
    """Start a host whose user has these servers; close it at the end."""
    write_servers(home, servers)
    settings: dict[str, Any] = {"wait_seconds": 60.0, "environment": dict(os.environ), **options}
    host = McpHost(own or ToolSet(), HostOptions(home, **settings))
    try:
        yield host
    finally:
        await host.aclose()


SOON_ENDED = McpTimeouts(exit_seconds=(0.1, 0.5))
"""Short waits before programs are killed: programs that hang on purpose do not end by themselves."""
hosting_soon_ended = functools.partial(hosting, timeouts=SOON_ENDED)


async def status_when(
    host: McpHost, scope: ToolScope, name: str, state: ServerState, seconds: float = 60
) -> ServerStatus:
    """Return the status of a server, once it is in `state`."""
    found: list[ServerStatus] = []

    async def reached() -> bool:
        found[:] = [status for status in await host.servers(scope) if status.name == name]
        assert found, f"no server {name}"
        assert found[0].state is state, found[0]
        return True

    await eventually_async(reached, seconds)
    return found[0]


def node_server(name: str, *arguments: str) -> dict[str, Any]:
    """Return the configuration of a server of the npm packages."""
    script = node_package(f"{PACKAGES}/{name}") / "dist" / "index.js"
    return {"command": str(require("node")), "args": [str(script), *arguments]}


@contextlib.contextmanager
def everything_over(transport: str, port: int | None = None) -> Generator[int]:
    """Start the everything server over HTTP, at a free port if none is given, and yield its port."""
    place = port or free_port()
    script = node_package(f"{PACKAGES}/server-everything") / "dist" / "index.js"
    with listening([str(require("node")), str(script), transport], place):
        yield place


def official_python(transport: str, port: int = 0) -> list[str]:
    """Return the command of the server of the official Python SDK with the tools ``echo`` and ``wait``."""
    return [sys.executable, str(SUPPORT / "official_mcp_server.py"), transport, *([str(port)] if port else [])]


@contextlib.contextmanager
def listening(command: Sequence[str], port: int) -> Generator[None]:
    """Start a server, which may take its port from the variable PORT; kill it afterwards."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def listens() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(listens, 60)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # node is a program around the real one, which may end later
        process.wait()
        eventually(lambda: not listens())
