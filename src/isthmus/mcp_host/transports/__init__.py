"""The ways to an MCP server: a program's pipes, streamable HTTP of the SDK within bounds, and SSE."""
