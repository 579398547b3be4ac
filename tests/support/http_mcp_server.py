"""An MCP server over streamable HTTP with one tool, ``add``; a program: ``python http_mcp_server.py PORT``."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("adder")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
