"""The command /mcp of the whole program over real servers, as documented: in one command, over A2A, and restarted."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import CommandMessage, CommandScope
from isthmus.events import StateChange, TextContent
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.mcp_hosting import SCRIPTED, scripted, write_servers
from support.serve_program import serve_program

TESTS = Path(__file__).resolve().parent.parent
NOTES = TESTS / "support" / "notes_mcp_server.py"
SECRET = "a-secret-value-123"


@pytest.fixture
def servers(
    isolated_folders: IsolatedFolders, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make the servers of the document's example; ``docker`` is a program of that name that runs its arguments."""
    folder = workspace / "mcp-servers" / "python"
    folder.mkdir(parents=True)
    shutil.copy(NOTES, folder / "my_mcp_server.py")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "docker").write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{SCRIPTED}" plain\n', encoding="utf-8")
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    found: dict[str, Any] = {
        "pythonTools": {
            "command": sys.executable,
            "args": ["-m", "my_mcp_server", "--api-key", SECRET],
            "cwd": "./mcp-servers/python",
            "env": {"API_KEY": SECRET},
            "timeout": 15000,
        },
        "nodeServer": scripted("dies", SECRET, env={"TOKEN": SECRET}),
        "dockerizedServer": {"command": "docker", "args": ["run", "-i", "--rm", "-e", f"API_KEY={SECRET}", "image"]},
        "emptyServer": scripted("nothing"),
        "far": {"httpUrl": f"http://me:{SECRET}@127.0.0.1:9/mcp?key={SECRET}", "headers": {"X-Token": SECRET}},
    }
    write_servers(isolated_folders.home, found)


def entry(text: str, name: str) -> list[str]:
    """Return the lines of one server."""
    return next(part for part in text.split("\n\n") if f" {name} (" in part).splitlines()


@pytest.mark.requirement("MCP-114", "MCP-118", "MCP-119", "MCP-131")
@pytest.mark.usefixtures("servers")
def test_every_server_is_listed_with_its_state_and_without_its_secrets(
    workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    ran = loaded_isthmus.run("-m", "demo", "-p", "/mcp", folder=workspace)
    assert SECRET not in ran.stdout + ran.stderr
    first, *_, last = ran.stdout.strip().split("\n\n")
    assert (first, last) == ("MCP Servers Status:", "Discovery State: COMPLETED")
    assert entry(ran.stdout, "pythonTools")[:6] == [
        "📡 pythonTools (CONNECTED)",
        f"  Command: {sys.executable} -m my_mcp_server --api-key ***",
        "  Working Directory: ./mcp-servers/python",
        "  Environment: API_KEY=***",
        "  Timeout: 15000ms",
        "  Tools: keep",
    ]
    failed = entry(ran.stdout, "nodeServer")
    assert failed[0] == "🔌 nodeServer (DISCONNECTED)"
    assert [line[:9] for line in failed if "Error" in line] == ["  Error: "]
    empty = entry(ran.stdout, "emptyServer")
    assert empty[0] == "🔌 emptyServer (DISCONNECTED)"
    assert empty[-1].startswith("  Error: it is connected but offers nothing usable")
    assert entry(ran.stdout, "dockerizedServer")[:3] == [
        "🐳 dockerizedServer (CONNECTED)",
        "  Command: docker run -i --rm -e API_KEY=*** image",
        "  Tools: ok",
    ]
    assert entry(ran.stdout, "far")[:3] == [
        "🔌 far (DISCONNECTED)",
        "  URL: http://127.0.0.1:9/mcp?key=***",
        "  Headers: X-Token: ***",
    ]
    described = loaded_isthmus.run("-m", "demo", "-p", "/mcp desc", folder=workspace).stdout
    assert "  Tools:\n    - keep: Keep a note.\n" in described
    # Stored data does not replace the servers' state: no second listing follows this one.
    assert "📡 pythonTools (CONNECTED)" in described
    assert described.endswith("\n\nDiscovery State: COMPLETED\n")


@pytest.mark.requirement("MCP-113", "MCP-115", "MCP-129")
@pytest.mark.usefixtures("servers")
@pytest.mark.anyio
async def test_a_client_of_a2a_lists_restarts_and_switches_servers(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as server:
        agent = await RemoteAgent.connect(server.url, server.token)

        async def said(*path: str, args: str = "") -> str:
            scope = CommandScope(settings={"workspace_path": str(workspace)})
            execution = await agent.execute(CommandMessage(path, args, scope))
            assert execution.turn is not None, execution.message
            events = [delivery.event async for delivery in execution.turn.deliveries]
            return "".join(event.text for event in events if isinstance(event, TextContent))

        async def refused(*path: str, args: str = "") -> str:
            scope = CommandScope(settings={"workspace_path": str(workspace)})
            execution = await agent.execute(CommandMessage(path, args, scope))
            assert execution.turn is not None, execution.message
            events = [delivery.event async for delivery in execution.turn.deliveries]
            return "".join(event.error or "" for event in events if isinstance(event, StateChange))

        assert "🐳 dockerizedServer (CONNECTED)" in await said("mcp")
        one = await said("mcp", "schema", args="dockerizedServer")
        assert "dockerizedServer (CONNECTED)" in one
        assert "pythonTools" not in one
        assert "no MCP server is named 'nobody'; configured: pythonTools" in await refused("mcp", args="nobody")
        assert "📡 pythonTools (CONNECTED)" in await said("mcp", "restart", args="pythonTools")
        off = entry(await said("mcp", "disable", args="pythonTools"), "pythonTools")
        assert off[0] == "⏸ pythonTools (DISABLED)"
        assert "switched off" in off[-1]
        kept = json.loads((Path.home() / ".gemini" / "mcp-server-enablement.json").read_text("utf-8"))
        assert kept == {"pythontools": {"enabled": False}}
        assert "📡 pythonTools (CONNECTED)" in await said("mcp", "enable", args="pythonTools")
        await agent.aclose()
