"""References to resources of MCP servers in a user's message: how ``@server:uri`` is written, and reading it."""
