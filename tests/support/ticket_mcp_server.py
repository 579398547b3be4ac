"""An MCP server over streamable HTTP that refuses requests without a valid ticket.

A program: ``python ticket_mcp_server.py PORT FILE``. Each request must have the header ``X-Ticket`` with the content of
the file, and no header ``X-Old``.
"""

import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("tickets")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def main(port: int, file: Path) -> None:
    """Serve until the process is killed."""
    app: Any = server.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and (headers.get(b"x-ticket") != file.read_bytes() or b"x-old" in headers):
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"no ticket"})
            return
        await app(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
