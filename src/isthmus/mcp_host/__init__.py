"""The MCP host: the servers of the settings files, their states, and their tools as tools of the agent.

Only this package imports `mcp`, the official SDK, and only when it connects to a server: the import takes a second.
"""
