"""References in a user's message to files of the workspace and to resources of MCP servers: syntax, and reading."""
