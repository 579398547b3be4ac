"""An MCP server on stdio with one tool, ``keep``; a program: ``python notes_mcp_server.py``."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


@server.tool()
def keep(note: str) -> str:
    """Keep a note."""
    return f"kept {note}"


if __name__ == "__main__":
    server.run()
