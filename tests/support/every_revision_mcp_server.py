"""MCP servers of every revision over HTTP, in one program: ``every_revision_mcp_server.py KIND REVISION PORT ...``.

Each has the tool ``grow``, which adds a tool, a prompt and a resource, and notifies as its revision defines. KIND is
``http`` or ``sse``.
"""

import sys
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.resources import TextResource
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


def grown() -> str:
    """Came later."""
    return "I am new"


def server_of(revision: str) -> MCPServer[Any]:
    """Return a server that speaks only `revision`."""
    is_modern = revision in MODERN_PROTOCOL_VERSIONS

    async def negotiate(ctx: Any, call_next: Any) -> Any:
        if ctx.method != "initialize":
            return await call_next(ctx)
        if is_modern:
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        ctx.params["protocolVersion"] = revision  # as if the client knew only this one
        return await call_next(ctx)

    server: MCPServer[Any] = MCPServer(f"of {revision}", middleware=[negotiate])

    @server.tool()
    async def grow(context: Context[Any, Any]) -> str:
        """Add a tool, a prompt and a resource."""
        server.add_tool(grown)
        server.add_prompt(Prompt.from_function(grown))
        server.add_resource(TextResource(uri="note://grown", name="grown", text="new"))
        if is_modern:
            await context.notify_tools_changed()
            await context.notify_prompts_changed()
            await context.notify_resources_changed()
        else:
            await context.session.send_tool_list_changed()
            await context.session.send_prompt_list_changed()
            await context.session.send_resource_list_changed()
        return f"grown by {context.session.protocol_version}"

    return server


async def main() -> None:
    kind, *pairs = sys.argv[1:]
    async with anyio.create_task_group() as servers:
        for revision, port in zip(pairs[::2], pairs[1::2], strict=True):
            server = server_of(revision)
            run = server.run_streamable_http_async if kind == "http" else server.run_sse_async
            servers.start_soon(lambda run=run, port=port: run(host="127.0.0.1", port=int(port)))


anyio.run(main)
