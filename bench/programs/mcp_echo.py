"""A minimal MCP server on stdio, on the SDK's low-level API, with one tool, ``echo``."""

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """Return the one tool."""
    return types.ListToolsResult(tools=[types.Tool(name="echo", description="Says it again.", input_schema=SCHEMA)])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return the given text."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=str((params.arguments or {})["text"]))])


async def main() -> None:
    """Serve until standard input ends."""
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
