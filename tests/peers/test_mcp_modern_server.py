"""A server that knows no handshake: only the revision of 2026, in which changes are heard of by a subscription."""

import sys
from pathlib import Path

import pytest

from isthmus.tools.base import ToolScope
from isthmus.tools.servers import ServerState
from support.mcp_hosting import hosting, status_when
from support.tool_calls import said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).resolve().parent.parent / "support" / "modern_mcp_server.py"


@pytest.mark.requirement("MCP-006", "MCP-084")
async def test_a_server_without_a_handshake_is_used_and_its_changes_are_heard_of(
    tmp_path: Path, workspace: Path
) -> None:
    home = tmp_path / "person"
    home.mkdir()
    async with hosting(home, {"modern": {"command": sys.executable, "args": [str(SERVER)]}}) as host:
        scope = ToolScope(workspace)
        tools = (await host.tools(scope)).tools
        await status_when(host, scope, "modern", ServerState.CONNECTED)
        assert list(tools) == ["grow"]
        assert said(await success_of(tools["grow"], tool_context(workspace))) == "grown"

        async def has_grown() -> bool:
            return "grown" in (await host.tools(scope)).tools

        await eventually_async(has_grown, 20)
        grown = (await host.tools(scope)).tools["grown"]
        assert said(await success_of(grown, tool_context(workspace))) == "I am new"
