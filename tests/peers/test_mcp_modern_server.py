"""A server without a handshake: only the revision of 2026, in which a subscription reports changes."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import SCRIPTED, hosting, status_when
from support.tool_calls import said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).resolve().parent.parent / "support" / "modern_mcp_server.py"


@pytest.mark.requirement("MCP-006", "MCP-084")
async def test_a_server_without_a_handshake_is_used_and_its_changes_are_heard_of(
    tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / "user"
    home.mkdir()
    async with hosting(home, {"modern": {"command": sys.executable, "args": [str(SERVER)]}}) as host:
        scope = ToolScope(workspace)
        tools = (await host.tools(scope)).tools
        await status_when(host, scope, "modern", ServerState.CONNECTED)
        assert list(tools) == ["grow"]
        assert said(await success_of(tools["grow"], tool_context(workspace))) == "grown"

        async def has_grown() -> bool:
            return "grown" in (await host.tools(scope)).tools

        await eventually_async(has_grown)
        grown = (await host.tools(scope)).tools["grown"]
        assert said(await success_of(grown, tool_context(workspace))) == "I am new"


async def test_a_servers_nature_is_kept_for_the_next_start_and_a_changed_one_is_connected(
    tmp_path: Path, workspace: Path
) -> None:
    home, cache, program = tmp_path / "user", tmp_path / "cache", tmp_path / "server.py"
    home.mkdir()
    servers = {"s": {"command": sys.executable, "args": [str(program), "plain"]}}
    scope = ToolScope(workspace)
    shutil.copy(SERVER, program)
    for _ in range(2):
        async with hosting(home, servers, cache=cache) as host:
            assert list((await host.tools(scope)).tools) == ["grow"]
            await status_when(host, scope, "s", ServerState.CONNECTED)
            await eventually_async(lambda: list(cache.glob("*.json")))
        (file,) = cache.glob("*.json")
        way = json.loads(file.read_text())["manifest"]["way"]
        assert way["is_modern"]
        assert "2026-07-28" in way["discovered"]["supportedVersions"]
    program.unlink()
    program.symlink_to(SCRIPTED)
    async with hosting(home, servers, cache=cache) as host:
        await status_when(host, scope, "s", ServerState.CONNECTED)
        assert list((await host.tools(scope)).tools) == ["ok"]
