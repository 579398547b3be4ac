"""The MCP SDK's streamable HTTP server with the companion's cheapest tool, as a peer; with ``--sse`` it streams."""

import asyncio
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

from bench.programs import probe
from isthmus.a2a.server.listen import bind, url_of

peer = MCPServer("peer")


@peer.tool(name="closeDiff")
def close_diff(filePath: str) -> str:
    """Return the companion's answer for a file without a diff."""
    return f"no diff is open for {filePath}"


async def _serve(*, json_answers: bool) -> None:
    listener = bind("127.0.0.1", 0)
    application = peer.streamable_http_app(json_response=json_answers)
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", access_log=False))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    probe.start(url_of(listener) + "mcp")
    await serving


if __name__ == "__main__":
    asyncio.run(_serve(json_answers="--sse" not in sys.argv))
