"""A user's MCP servers and tools as other processes see them."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import CommandMessage, CommandScope
from isthmus.events import TextContent
from support.turns import events_of_command
from support.waiting import eventually_async

PROGRAM = Path(__file__).parent / "mcp_tools_program.py"


async def process_lists(home: Path, workspace: Path, **environment: str) -> dict[str, Any]:
    """Return the names of its ``tools``, and state and problem of each of its ``servers``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        str(home),
        str(workspace),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(home), **environment},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return json.loads(out)


async def are_connected(agent: RemoteAgent, workspace: Path, *servers: str) -> None:
    """Wait until an agent is connected to these servers: a turn waits only some seconds for them."""
    scope = CommandScope(settings={"workspace_path": str(workspace)})

    async def listed() -> bool:
        events = await events_of_command(await agent.execute(CommandMessage(("mcp", "list"), "", scope)))
        text = "".join(event.text for event in events if isinstance(event, TextContent))
        assert all(f" {server} (CONNECTED)" in text for server in servers), text
        return True

    await eventually_async(listed, 90, what=f"{', '.join(servers)} are connected")
