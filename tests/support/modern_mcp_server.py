"""An MCP server on stdio that has no handshake, only the revision of 2026: ``python modern_mcp_server.py``.

Its tool ``grow`` adds a tool ``grown`` and notifies subscribers.
"""

from typing import Any

from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import METHOD_NOT_FOUND


async def no_handshake(ctx: Any, call_next: Any) -> Any:
    """Refuse ``initialize``."""
    if ctx.method == "initialize":
        raise MCPError(METHOD_NOT_FOUND, "Method not found")
    return await call_next(ctx)


server = MCPServer("modern", middleware=[no_handshake])


def grown() -> str:
    """Came later."""
    return "I am new"


@server.tool()
async def grow(context: Context[Any, Any]) -> str:
    """Add a tool."""
    server.add_tool(grown)
    await context.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    server.run()
