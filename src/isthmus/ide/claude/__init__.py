"""Claude IDE protocol (MCP over WebSocket): the server for Claude Code, and the client of our own agent."""
