"""The MCP host: servers of the settings files, their tools as the agent's tools, and how they stand.

`mcp`, the official SDK, is imported in this room alone, and only when a server is to be connected: it takes a second.
"""
