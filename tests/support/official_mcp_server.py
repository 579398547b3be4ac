"""An MCP server of the official Python SDK: ``python official_mcp_server.py TRANSPORT [PORT]``, one of the SDK's names.

Its tools are ``echo``, and ``wait``, which takes as long as its caller likes.
"""

import asyncio
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("official")


@server.tool()
def echo(message: str) -> str:
    """Return the message."""
    return f"Echo: {message}"


@server.tool()
async def wait(duration: float, context: Context) -> str:
    """Report progress, and wait for some seconds."""
    await context.report_progress(0, duration)
    await asyncio.sleep(duration)  # delay: the client names how long the tool takes
    return "waited"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stdio"]:
            server.run("stdio")
        case ["sse", port]:
            server.run("sse", host="127.0.0.1", port=int(port))
        case [_, port]:
            server.run("streamable-http", host="127.0.0.1", port=int(port))
        case _:
            sys.exit(__doc__)
