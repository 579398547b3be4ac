"""Spec 3: the companion that Claude Code connects to over MCP and WebSocket, and our client of them."""
