"""MCP servers that a client brings as commands, as editors do over ACP."""

import sys
from pathlib import Path

import pytest

from isthmus.development_tool import McpServerSettings
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import SUPPORT, hosting, scripted
from support.tool_calls import said, success_of, tool_context

pytestmark = pytest.mark.anyio

SERVER = SUPPORT / "notes_mcp_server.py"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def notes(starts: Path, name: str = "notes") -> McpServerSettings:
    """Return a server that adds a line to a file whenever it starts."""
    script = 'echo "$MARK $PWD" >> "$0"; exec "$1" "$2"'
    arguments = ("-c", script, str(starts), sys.executable, str(SERVER))
    return McpServerSettings(name, command="/bin/sh", args=arguments, env={"MARK": "started"})


async def test_a_clients_program_goes_on_from_turn_to_turn(home: Path, workspace: Path) -> None:
    starts = home / "starts"
    async with hosting(home, {}, allows_client_programs=True) as host:
        for task in ("t1", "t2"):
            scope = ToolScope(workspace, "session", task, (McpServerSettings("*"), notes(starts)))
            tools = (await host.tools(scope)).tools
            assert said(await success_of(tools["keep"], tool_context(workspace), note=task)) == f"kept {task}"
            await host.release(scope)
        assert starts.read_text() == f"started {workspace}\n"


async def test_a_program_that_the_client_no_longer_names_ends(home: Path, workspace: Path) -> None:
    starts = home / "starts"
    async with hosting(home, {}, allows_client_programs=True) as host:
        first = ToolScope(workspace, "session", "t1", (McpServerSettings("*"), notes(starts)))
        tool = (await host.tools(first)).tools["keep"]
        await host.release(first)
        second = ToolScope(workspace, "session", "t2", (McpServerSettings("*"), notes(starts, "others")))
        await host.tools(second)
        with pytest.raises(ToolFailure, match="is not connected"):
            await success_of(tool, tool_context(workspace), note="late")
        await host.release(second)


async def test_another_users_session_of_the_same_id_has_programs_of_nobody(home: Path, workspace: Path) -> None:
    starts = home / "starts"
    async with hosting(home, {}, allows_client_programs=True) as host:
        first = ToolScope(workspace, "session", "t1", (notes(starts),))
        tool = (await host.tools(first)).tools["keep"]
        await host.release(first)
        url = McpServerSettings("far", url="http://127.0.0.1:9/")
        others = ToolScope(workspace, "session", "t2", (url,), "alice")
        assert "keep" not in (await host.tools(others)).tools
        await host.release(others)
        assert said(await success_of(tool, tool_context(workspace), note="still")) == "kept still"
        with pytest.raises(ToolFailure, match="commands of clients are not run here"):
            await host.tools(ToolScope(workspace, "session", "t3", (notes(starts),), "alice"))


async def test_the_configured_servers_are_used_beside_a_clients_own(home: Path, workspace: Path) -> None:
    async with hosting(home, {"plain": scripted("plain")}, allows_client_programs=True) as host:
        scope = ToolScope(workspace, "session", "t", (McpServerSettings("*"), notes(home / "starts")))
        names = {status.name for status in await host.servers(scope)}
        await host.tools(scope)
        assert {status.name for status in await host.servers(scope)} == names == {"plain", "notes"}
        await host.release(scope)


async def test_a_command_is_refused_where_clients_are_not_the_user(home: Path, workspace: Path) -> None:
    starts = home / "starts"
    async with hosting(home, {}) as host:
        scope = ToolScope(workspace, "session", "t", (notes(starts),))
        with pytest.raises(ToolFailure, match="'notes' is a command, and commands of clients are not run here"):
            host.check(workspace, scope.mcp_servers)
        with pytest.raises(ToolFailure, match="commands of clients are not run here"):
            await host.tools(scope)
    assert not starts.exists()
