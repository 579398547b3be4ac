"""Servers of each revision of MCP, over each transport: they are used, and their notifications of changes arrive."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import SUPPORT, hosting, scripted, status_when
from support.ports import free_port
from support.tool_calls import said, success_of, tool_context
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def name_of(revision: str) -> str:
    """Return a server's name that can be part of its tools' names."""
    return f"of_{revision}"


def test_these_are_the_revisions_that_there_are() -> None:
    assert [*HANDSHAKES, "2026-07-28"] == list(SUPPORTED_PROTOCOL_VERSIONS)


@contextlib.contextmanager
def servers_over(kind: str, *revisions: str) -> Generator[dict[str, Any]]:
    """Start servers of these revisions in one program; yield their settings by revision."""
    ports = {revision: free_port() for revision in revisions}
    pairs = [word for revision, port in ports.items() for word in (revision, str(port))]
    command = [sys.executable, str(SUPPORT / "every_revision_mcp_server.py"), kind, *pairs]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:

        def listen() -> bool:
            for port in ports.values():
                with socket.socket() as connection:
                    if connection.connect_ex(("127.0.0.1", port)) != 0:
                        return False
            return True

        try:
            eventually(listen, 60, what="the servers listen")
            yield {
                name_of(revision): {"httpUrl": f"http://127.0.0.1:{port}/mcp"}
                if kind == "http"
                else {"url": f"http://127.0.0.1:{port}/sse", "type": "sse"}
                for revision, port in ports.items()
            }
        finally:
            process.kill()


async def offered(host: McpHost, scope: ToolScope, server: str) -> tuple[tuple[str, ...], ...]:
    """Return a server's current tools, prompts and resources by name."""
    (status,) = [status for status in await host.servers(scope) if status.name == server]
    return tuple(tool.name for tool in status.tools), status.prompts, status.resources


async def test_over_stdio_each_kind_of_change_is_heard_by_itself(tmp_path: Path, workspace: Path) -> None:
    home = tmp_path / "user"
    home.mkdir()
    servers = {name_of(found): scripted("grows", found) for found in HANDSHAKES}
    async with hosting(home, servers) as host:
        scope, context = ToolScope(workspace), tool_context(workspace)
        for name in servers:
            await status_when(host, scope, name, ServerState.CONNECTED, 60)
        for number, name in enumerate(servers):
            prefix = f"{name}__" if number else ""
            grow = (await host.tools(scope)).tools[f"{prefix}grow"]
            expected: list[tuple[str, ...]] = [(f"{prefix}grow",), (), ()]
            assert await offered(host, scope, name) == tuple(expected)
            for place, kind, more in (
                (1, "prompts", ("new-prompt",)),
                (2, "resources", ("note://new",)),
                (0, "tools", (f"{prefix}grow", f"{prefix}new_tool")),
            ):
                await success_of(grow, context, kind=kind)
                expected[place] = more

                async def is_heard(name: str = name, expected: tuple[Any, ...] = tuple(expected)) -> bool:
                    return await offered(host, scope, name) == expected

                await eventually_async(is_heard, 30)


@pytest.mark.requirement("MCP-005")
@pytest.mark.parametrize(
    ("kind", "revisions"),
    [("http", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]), ("sse", ["2024-11-05"])],
)
async def test_over_http_changes_are_heard_in_the_way_of_the_revision(
    kind: str, revisions: list[str], tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / "user"
    home.mkdir()
    with servers_over(kind, *revisions) as servers:
        async with hosting(home, servers) as host:
            scope = ToolScope(workspace)
            for name in servers:
                await status_when(host, scope, name, ServerState.CONNECTED, 60)
            for number, (name, revision) in enumerate(zip(servers, revisions, strict=True)):
                prefix = f"{name}__" if number else ""
                tool = (await host.tools(scope)).tools[f"{prefix}grow"]
                assert said(await success_of(tool, tool_context(workspace))) == f"grown by {revision}"
                expected = ((f"{prefix}grow", f"{prefix}grown"), ("grown",), ("note://grown",))

                async def is_heard(name: str = name, expected: tuple[Any, ...] = expected) -> bool:
                    return await offered(host, scope, name) == expected

                await eventually_async(is_heard, 30)
