"""The Claude IDE protocol: the companion that Claude Code connects to over MCP and WebSocket, and our client of it."""
