"""A program that hosts the MCP servers of a user, prints their states and tools as JSON, and ends: HOME WORKSPACE."""

import asyncio
import json
import os
import sys
from pathlib import Path

from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.tools.port.tool_set import ToolScope, ToolSet


async def main(home: Path, workspace: Path) -> None:
    host = McpHost(ToolSet(), HostOptions(home, dict(os.environ), wait_seconds=40.0))
    try:
        tools = await host.tools(ToolScope(workspace))
        statuses = await host.servers(ToolScope(workspace))
        found = {status.name: [status.state.value, status.problem] for status in statuses}
        print(json.dumps({"tools": list(tools.tools), "servers": found}))
    finally:
        await host.aclose()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
