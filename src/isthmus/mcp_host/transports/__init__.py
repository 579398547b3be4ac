"""The transports to an MCP server: a program's pipes, the SDK's streamable HTTP with limits, and SSE."""
